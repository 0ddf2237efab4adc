"""Weights of the layers: as many as layers, each with its own first power iteration."""

import torch

from vesper.model.message_passing import LayerSpec


def test_one_weight_per_layer_each_from_its_own_seed() -> None:
    layers = LayerSpec(width=3, num_layers=2, exact=False, noise=None, seed=5)
    first, second = layers.unit_weights()
    assert first.weight.shape == second.weight.shape == (3, 3)
    assert not torch.equal(first.u, second.u)
    for made, again in zip(layers.unit_weights(), (first, second), strict=True):
        assert torch.equal(made.u, again.u)
        assert made.weight is not again.weight
