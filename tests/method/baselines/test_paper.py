"""The paper's plan and the networks without privacy: claims, noise, what they share."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.utility_cells import WITHOUT_NOISE

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.door import OpenDoor
from vesper.method.base import PublicSizes
from vesper.method.registry import find_method
from vesper.method.settings import Config
from vesper.model.decoders import ConcatDecoder, GruDecoder
from vesper.privacy.accounting.theorem_1 import PaperTraining, claimed_epsilon
from vesper.session.config import load_config
from vesper.simulation.simulate import simulate

SIZES = PublicSizes(num_nodes=50_000, num_train=10_000, num_features=3, num_classes=2)
SMALL = {"epochs": 2, "width": 8, "batch_size": 64, "max_degree": 4}
PAPER = ["paper-gin", "paper-gcn"]


def config_of(method: str, **settings: object) -> Config:
    return load_config(None, {"method": method, **settings})


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, write_folders: Callable[..., Path]) -> Path:
    """200 nodes, three communities, six neighbours each."""
    rng, n = np.random.default_rng(0), 200
    labels = np.arange(n) % 3
    src = rng.integers(0, n, size=3 * n)
    dst = rng.integers(0, n // 3, size=3 * n) * 3 + labels[src]
    columns = {f"f{k}": rng.normal(size=n).astype(np.float32) for k in range(3)}
    splits = rng.permutation(["train"] * 100 + ["val"] * 50 + ["test"] * 50)
    return write_folders(
        tmp_path_factory.mktemp("small"),
        nodes={"id": np.arange(n), **columns},
        edges={"src": src, "dst": dst},
        labels={"id": np.arange(n), "label": labels, "split": splits},
    )


def weights_of(run: Path) -> dict[str, np.ndarray]:
    weights = {}
    for party in ("data_party", "label_party"):
        with np.load(run / f"{party}.npz") as file:
            weights.update({f"{party}.{key}": file[key] for key in file.files})
    return weights


def same_weights(first: Path, second: Path) -> bool:
    one, two = weights_of(first), weights_of(second)
    return one.keys() == two.keys() and all(np.array_equal(one[k], two[k]) for k in one)


@pytest.mark.parametrize(("name", "network"), WITHOUT_NOISE.items())
def test_without_privacy_it_is_the_plain_network_bit_for_bit(
    folders: Path, tmp_path: Path, name: str, network: str
) -> None:
    results = [
        simulate(folders, config_of(each, epsilon=math.inf, **SMALL), tmp_path / each)
        for each in (network, name)
    ]
    assert same_weights(tmp_path / network, tmp_path / name)
    assert results[0].stages == results[1].stages
    assert {result.privacy.plan for result in results} == {"none"}
    assert results[1].privacy.noise_std is None


@pytest.mark.parametrize("name", PAPER)
def test_a_finite_epsilon_is_claimed_and_never_certified(
    folders: Path, tmp_path: Path, name: str
) -> None:
    settings = {**SMALL, "min_degree": 3, "epsilon": 2.0}
    runs = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    results = [
        simulate(folders, config_of(name, seed=seed, **settings), run).as_json()
        for run, seed in zip(runs, (5, 5, 6), strict=True)
    ]
    privacy = results[0]["privacy"]
    assert privacy["plan"] == "paper"
    assert privacy["certified_epsilon"] is None
    assert 1.99 < privacy["claimed_epsilon"] <= 2.0
    assert privacy["noise_std"] > 0
    assert same_weights(runs[0], runs[1])
    assert results[0]["stages"] == results[1]["stages"]
    assert not same_weights(runs[0], runs[2])


@pytest.mark.parametrize("name", ["gin", "gcn"])
def test_networks_without_privacy_never_have_noise(name: str) -> None:
    noise_plan = find_method(name).noise_plan(config_of(name, epsilon=1.0), SIZES)
    assert (noise_plan.plan, noise_plan.claimed_epsilon, noise_plan.certified_epsilon) == (
        "none",
        None,
        None,
    )
    assert noise_plan.noise_stds == (0.0, 0.0)


@pytest.mark.parametrize("name", PAPER)
def test_steps_are_counted_as_if_nothing_stopped_early(name: str) -> None:
    steps = {"epochs": 7, "batch_size": 300, "hops": 2}
    config = config_of(name, epsilon=2.0, min_degree=10, max_degree=20, **steps)
    noise_plan = find_method(name).noise_plan(config, SIZES)
    sensitivity = math.sqrt(2) if name.endswith("gin") else 0.20499
    training = PaperTraining(
        num_train_nodes=10_000,
        batch_size=300,
        max_degree=20,
        num_layers=2,
        num_epochs=7,
        edge_sensitivity=sensitivity,
    )
    assert training.num_steps == 7 * 34
    assert noise_plan.delta == 1e-6
    assert noise_plan.noise_stds[0] == noise_plan.noise_stds[1]
    assert claimed_epsilon(
        training=training, noise_std=noise_plan.noise_stds[0], delta=1e-6
    ) == pytest.approx(noise_plan.claimed_epsilon, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 32.0])
@pytest.mark.parametrize("name", PAPER)
def test_a_smaller_epsilon_needs_more_noise(name: str, epsilon: float) -> None:
    def noise_std(epsilon: float) -> float:
        return find_method(name).noise_plan(config_of(name, epsilon=epsilon), SIZES).noise_stds[0]

    assert noise_std(epsilon) > noise_std(2 * epsilon) > 0


def test_releases_differ_by_the_claimed_noise() -> None:
    """One layer, wide rows, no ReLU in the way: pre-noise values are the same in every draw."""
    graph = Graph.from_edges(40, [(k, (k + 1) % 40) for k in range(40)])
    features = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    sizes = PublicSizes(num_nodes=40, num_train=30, num_features=3, num_classes=2)
    config = config_of("vfgnn", epsilon=4.0, width=64, epochs=3)
    method = find_method("vfgnn")
    side = method.make_representation(
        config,
        sizes,
        noise_plan=method.noise_plan(config, sizes),
        features=features,
        door=OpenDoor(graph),
    )
    side.module.eval()
    with torch.no_grad():
        first, second = (side.embed(np.arange(40), training=False) for _ in range(2))
    noise_std = method.noise_plan(config, sizes).noise_stds[0]
    spread = float((first - second).std()) / math.sqrt(2)
    assert spread == pytest.approx(noise_std, rel=0.06)  # 2560 entries: 0.014 is one deviation


def test_layers_of_the_paper_plan_differ_between_noise_draws() -> None:
    graph = Graph.from_edges(40, [(k, (k + 1) % 40) for k in range(40)])
    features = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    sizes = PublicSizes(num_nodes=40, num_train=30, num_features=3, num_classes=2)
    for name, epsilon, repeats in (("paper-gin", 4.0, False), ("gin", 4.0, True)):
        config = config_of(name, epsilon=epsilon, width=16)
        method = find_method(name)
        side = method.make_representation(
            config,
            sizes,
            noise_plan=method.noise_plan(config, sizes),
            features=features,
            door=OpenDoor(graph),
        )
        side.module.eval()
        with torch.no_grad():
            first, second = (side.embed(np.arange(40), training=False) for _ in range(2))
        assert torch.equal(first, second) == repeats  # all two neighbours are always sampled


def test_truncation_needs_a_degree_that_the_sample_can_have() -> None:
    config = config_of("paper-gcn", epsilon=1.0, min_degree=30, max_degree=20)
    with pytest.raises(InputError, match="at most max_degree=20, got 30"):
        find_method("paper-gcn").noise_plan(config, SIZES)


def test_the_recurrent_decoder_is_a_setting() -> None:
    method = find_method("paper-gin")
    for decoder, kind in (("gru", GruDecoder), ("concat", ConcatDecoder)):
        side = method.make_decoder(config_of(method.name, decoder=decoder), SIZES)
        assert any(isinstance(part, kind) for part in side.module.modules())
