"""Query nodes without labelled neighbours are detected; those like training nodes are similar."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from vesper.graph.holdings import open_data
from vesper.mechanism.door import ChargedDoor, open_graph_account
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.method.base import PublicSizes
from vesper.method.certified.query_nodes import (
    label_reach,
    label_reach_by_degree,
    label_reach_messages,
)
from vesper.method.certified.staged_representation import StagedRepresentation
from vesper.method.registry import find_method
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.ledger.store import Ledger
from vesper.session.config import load_config

NODES, TRAIN = 3000, 1000


def test_only_labelled_nodes_are_counted() -> None:
    assert label_reach_messages(np.array([2, 0]), 4).ravel().tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(("noise_std", "least"), [(1.0, 200), (5.0, 195), (8.0, 130)])
def test_similar_label_reach_is_recognized_where_noise_allows(noise_std: float, least: int) -> None:
    rng, num_similar = np.random.default_rng(0), 0
    for _ in range(200):
        counts = (rng.poisson(3, 600) + rng.normal(0, noise_std, 600)).astype(np.float32)
        num_similar += label_reach(counts[:300], counts[300:], noise_std=noise_std).similar
    assert num_similar >= least


@pytest.mark.parametrize("noise_std", [1.0, 5.0, 40.0, 400.0])
def test_nodes_without_labelled_neighbours_rarely_count_as_similar(noise_std: float) -> None:
    rng, num_similar = np.random.default_rng(0), 0
    for _ in range(200):
        labelled_counts = (rng.poisson(3, 300) + rng.normal(0, noise_std, 300)).astype(np.float32)
        query_counts = rng.normal(0, noise_std, 300).astype(np.float32)
        num_similar += label_reach(labelled_counts, query_counts, noise_std=noise_std).similar
    assert num_similar <= 10


def test_reach_is_similar_where_no_node_has_a_labelled_neighbour() -> None:
    rng = np.random.default_rng(0)
    labelled_counts, query_counts = rng.normal(0, 1, (2, 1000)).astype(np.float32)
    assert label_reach(labelled_counts, query_counts, noise_std=1.0).similar


def representation_with_door(
    root: Path, write_folders: Callable[..., Path], *, neighbors_from: int
) -> tuple[StagedRepresentation, ChargedDoor]:
    """Training nodes have edges to each other and to the thousand nodes from this one on.

    The last thousand nodes are query nodes.
    """
    rng = np.random.default_rng(1)
    src = rng.integers(0, TRAIN, 12_000)  # on average eight neighbours of either kind
    others = (0, TRAIN, 4000), (neighbors_from, neighbors_from + TRAIN, 8000)
    dst = np.concatenate([rng.integers(*each) for each in others])
    nodes: Mapping[str, object] = {"id": range(NODES), "x": rng.normal(size=NODES)}
    folder = write_folders(root, nodes=nodes, edges={"src": src, "dst": dst})
    data = open_data(folder / "data")
    config = load_config(None, {"epsilon": 4.0, "width": 4})
    sizes = PublicSizes(num_nodes=NODES, num_train=TRAIN, num_features=1, num_classes=2)
    account = open_graph_account(
        data.graph,
        "g",
        ledger=Ledger(root / "ledger.sqlite", clock=lambda: 0.0),
        budget=Budget(epsilon=4.0, delta=1e-5),
        simulated=True,
    )
    door = ChargedDoor(data.graph, account=account, noise=NoiseSource.for_simulation(0), run="r")
    method = find_method("certified")
    made = method.make_representation(
        config,
        sizes,
        noise_plan=method.noise_plan(config, sizes),
        features=data.features,
        door=door,
    )
    assert isinstance(made, StagedRepresentation)
    label_posteriors = np.eye(2, dtype=np.float32)[np.arange(TRAIN) % 2]
    made.set_labels(np.arange(TRAIN), label_posteriors, np.arange(2 * TRAIN, NODES))
    return made, door


@pytest.mark.parametrize(("neighbors_from", "use_labels"), [(2 * TRAIN, True), (TRAIN, False)])
def test_messages_contain_labels_only_where_query_nodes_receive_them(
    tmp_path: Path, write_folders: Callable[..., Path], neighbors_from: int, use_labels: bool
) -> None:
    made, door = representation_with_door(tmp_path, write_folders, neighbors_from=neighbors_from)
    made.begin_stage(0)
    assert door.account.releases == 0
    made.begin_stage(1)
    assert door.account.releases == 2  # the probe and the hop
    assert bool(made.fitted_arrays()["constants/use_labels"]) is use_labels


def test_no_probe_is_released_without_labelled_nodes(
    tmp_path: Path, write_folders: Callable[..., Path]
) -> None:
    made, door = representation_with_door(tmp_path, write_folders, neighbors_from=TRAIN)
    made.set_labels(np.arange(0), np.zeros((0, 2), dtype=np.float32), np.arange(NODES))
    made.begin_stage(0)
    made.begin_stage(1)
    assert door.account.releases == 1


def test_the_probe_and_the_hops_together_use_the_whole_budget() -> None:
    sizes = PublicSizes(num_nodes=NODES, num_train=TRAIN, num_features=1, num_classes=3)
    for epsilon in (0.05, 0.25, 4.0, 32.0):
        config = load_config(None, {"epsilon": epsilon})
        noise_plan = find_method("certified").noise_plan(config, sizes)
        without_probe = load_config(None, {"epsilon": epsilon, "label_messages": False})
        without = find_method("certified").noise_plan(without_probe, sizes)
        assert noise_plan.probe_noise_std is not None
        assert without.probe_noise_std is None
        spent = sum(noise_std**-2 for noise_std in noise_plan.all_noise_stds)
        whole = sum(noise_std**-2 for noise_std in without.all_noise_stds)
        assert spent == pytest.approx(whole, rel=1e-9)  # all of it, and no more
        assert noise_plan.noise_stds[0] < 1.07 * without.noise_stds[0]


def test_fewer_neighbours_are_distinguished_from_another_window() -> None:
    rng, noise_std = np.random.default_rng(0), 3.0
    similar = {"fewer neighbours": 0, "another window": 0, "no neighbours": 0}
    for _ in range(100):
        labelled_counts = (rng.poisson(8, 400) + rng.normal(0, noise_std, 400)).astype("f4")
        for what, mean in zip(similar, (2.4, 0.4, 0.0), strict=True):
            query_counts = (rng.poisson(mean, 400) + rng.normal(0, noise_std, 400)).astype("f4")
            ratio = 0.3 if mean else 0.0
            assert not label_reach(labelled_counts, query_counts, noise_std=noise_std).similar
            reach = label_reach_by_degree(
                labelled_counts, query_counts, ratio=ratio, noise_std=noise_std
            )
            similar[what] += reach is not None and reach.similar
    assert similar["fewer neighbours"] == 100
    assert similar["another window"] <= 5
    assert similar["no neighbours"] <= 6
