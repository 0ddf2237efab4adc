"""One contract, all methods."""

import numpy as np
import pytest
import torch

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.door import OpenDoor
from vesper.method.base import Method, Sizes
from vesper.method.registry import METHODS, find_method
from vesper.session.config import load_config

SIZES = Sizes(num_nodes=40, num_train=20, num_features=5, num_classes=3)
GRAPH = Graph.from_edges(40, [(k, (k + step) % 40) for k in range(40) for step in (1, 7)])
FEATURES = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
NODES = np.array([3, 1, 30])


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_every_method_keeps_the_contract(method: Method) -> None:
    settings = {"method": method.name, "epsilon": float("inf"), "width": 8, "hops": 2}
    config = load_config(None, settings)
    promise = method.promise(config, SIZES)
    assert promise.plan in {"none", "edge-free"}
    assert not any(promise.noise_stds)
    assert promise.claimed_epsilon is None
    embedded = []
    for _ in range(2):
        side = method.data_side(
            config,
            SIZES,
            noise_plan=method.promise(config, SIZES),
            features=FEATURES,
            door=OpenDoor(GRAPH),
        )
        side.hear(np.arange(20), np.eye(3, dtype=np.float32)[np.arange(20) % 3])
        for stage in range(method.stages(config, SIZES)):
            side.begin_stage(stage)
        side.module.eval()
        with torch.no_grad():
            embedded.append(side.embed(NODES, training=False))
    assert torch.equal(*embedded)
    decoder = method.label_side(config, SIZES)
    decoder.module.eval()
    assert decoder.decode(embedded[0], stage).shape == (3, 3)


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_a_finite_epsilon_has_noise_or_reads_no_edge(method: Method) -> None:
    config = load_config(None, {"method": method.name, "epsilon": 2.0})
    promise = method.promise(config, SIZES)
    if promise.plan in {"certified", "paper"}:
        assert promise.noise_stds or promise.releases  # noisy edges have no noise_std
        assert all(noise_std > 0 for noise_std in promise.noise_stds)
        assert (promise.certified_epsilon is None) == (promise.plan == "paper")
    else:
        assert promise.certified_epsilon == (0.0 if promise.plan == "edge-free" else None)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(InputError, match="expected one of vesper, .*mlp.*, got 'gnn'"):
        find_method("gnn")


@pytest.mark.parametrize("name", ["vesper", "mlp", "gap", "progap"])
def test_a_decoder_that_would_not_be_used_is_refused(name: str) -> None:
    config = load_config(None, {"method": name, "decoder": "gru"})
    with pytest.raises(InputError, match=f"expected 'concat' for {name}, got 'gru'"):
        METHODS[name].promise(config, SIZES)
