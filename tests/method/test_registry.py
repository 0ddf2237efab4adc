"""One interface, all methods."""

import numpy as np
import pytest
import torch

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.door import OpenDoor
from vesper.method.base import Method, PublicSizes
from vesper.method.registry import METHODS, find_method
from vesper.session.config import load_config

SIZES = PublicSizes(num_nodes=40, num_train=20, num_features=5, num_classes=3)
GRAPH = Graph.from_edges(40, [(k, (k + step) % 40) for k in range(40) for step in (1, 7)])
FEATURES = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
NODES = np.array([3, 1, 30])


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_every_method_implements_the_interface(method: Method) -> None:
    settings = {"method": method.name, "epsilon": float("inf"), "width": 8, "hops": 2}
    config = load_config(None, settings)
    noise_plan = method.noise_plan(config, SIZES)
    assert noise_plan.plan in {"none", "edge-free"}
    assert not any(noise_plan.noise_stds)
    assert noise_plan.claimed_epsilon is None
    embedded = []
    for _ in range(2):
        side = method.make_representation(
            config,
            SIZES,
            noise_plan=method.noise_plan(config, SIZES),
            features=FEATURES,
            door=OpenDoor(GRAPH),
        )
        side.set_labels(np.arange(20), np.eye(3, dtype=np.float32)[np.arange(20) % 3])
        for stage in range(method.stages(config, SIZES)):
            side.begin_stage(stage)
        side.module.eval()
        with torch.no_grad():
            embedded.append(side.embed(NODES, training=False))
    assert torch.equal(*embedded)
    decoder = method.make_decoder(config, SIZES)
    decoder.module.eval()
    assert decoder.decode(embedded[0], stage).shape == (3, 3)


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_a_finite_epsilon_has_noise_or_reads_no_edge(method: Method) -> None:
    config = load_config(None, {"method": method.name, "epsilon": 2.0})
    noise_plan = method.noise_plan(config, SIZES)
    if noise_plan.plan in {"certified", "paper"}:
        assert noise_plan.noise_stds or noise_plan.releases  # noisy edges have no noise_std
        assert all(noise_std > 0 for noise_std in noise_plan.noise_stds)
        assert (noise_plan.certified_epsilon is None) == (noise_plan.plan == "paper")
    else:
        assert noise_plan.certified_epsilon == (0.0 if noise_plan.plan == "edge-free" else None)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(InputError, match=r"expected one of certified, .*mlp.*, got 'gnn'"):
        find_method("gnn")


@pytest.mark.parametrize("name", ["certified", "mlp", "gap", "progap"])
def test_a_decoder_that_would_not_be_used_is_refused(name: str) -> None:
    config = load_config(None, {"method": name, "decoder": "gru"})
    with pytest.raises(InputError, match=f"expected 'concat' for {name}, got 'gru'"):
        METHODS[name].noise_plan(config, SIZES)
