"""Test nodes that hear nobody are noticed; those that hear as training nodes do are not."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from vesper.graph.holdings import open_data
from vesper.mechanism.door import ChargedDoor
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


def test_only_speakers_are_counted() -> None:
    assert label_reach_messages(np.array([2, 0]), 4).ravel().tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(("noise_std", "least"), [(1.0, 200), (5.0, 195), (8.0, 130)])
def test_those_that_are_alike_are_found_where_noise_allows(noise_std: float, least: int) -> None:
    rng, alike = np.random.default_rng(0), 0
    for _ in range(200):
        heard = (rng.poisson(3, 600) + rng.normal(0, noise_std, 600)).astype(np.float32)
        alike += label_reach(heard[:300], heard[300:], noise_std=noise_std).similar
    assert alike >= least


@pytest.mark.parametrize("noise_std", [1.0, 5.0, 40.0, 400.0])
def test_those_that_hear_nobody_are_hardly_ever_taken_for_alike(noise_std: float) -> None:
    rng, alike = np.random.default_rng(0), 0
    for _ in range(200):
        ours = (rng.poisson(3, 300) + rng.normal(0, noise_std, 300)).astype(np.float32)
        theirs = rng.normal(0, noise_std, 300).astype(np.float32)
        alike += label_reach(ours, theirs, noise_std=noise_std).similar
    assert alike <= 10


def test_where_nobody_hears_a_speaker_nothing_is_lacking() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(0, 1, (2, 1000)).astype(np.float32)
    assert label_reach(ours, theirs, noise_std=1.0).similar


def side(
    root: Path, write_folders: Callable[..., Path], *, to: int
) -> tuple[StagedRepresentation, ChargedDoor]:
    """Training nodes know one another and nodes from `to` on; the last thousand are asked for."""
    rng = np.random.default_rng(1)
    src = rng.integers(0, TRAIN, 12_000)  # eight neighbours of either kind
    dst = np.concatenate([rng.integers(0, TRAIN, 4000), rng.integers(to, to + TRAIN, 8000)])
    nodes: Mapping[str, object] = {"id": range(NODES), "x": rng.normal(size=NODES)}
    folder = write_folders(root, nodes=nodes, edges={"src": src, "dst": dst})
    data = open_data(folder / "data")
    config = load_config(None, {"epsilon": 4.0, "width": 4})
    sizes = PublicSizes(num_nodes=NODES, num_train=TRAIN, num_features=1, num_classes=2)
    door = ChargedDoor(
        data.graph,
        ledger=Ledger(root / "ledger.sqlite", clock=lambda: 0.0),
        budget=Budget(epsilon=4.0, delta=1e-5),
        noise=NoiseSource.for_simulation(0),
        run="r",
    )
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


@pytest.mark.parametrize(("to", "speaks"), [(2 * TRAIN, True), (TRAIN, False)])
def test_labels_are_messages_only_where_they_are_heard(
    tmp_path: Path, write_folders: Callable[..., Path], to: int, speaks: bool
) -> None:
    made, door = side(tmp_path, write_folders, to=to)
    made.begin_stage(0)
    assert door.account.releases == 0
    made.begin_stage(1)
    assert door.account.releases == 2  # the poll, and the hop
    assert bool(made.fitted_arrays()["constants/use_labels"]) is speaks


def test_nobody_is_polled_where_labels_stay_or_nobody_is_asked_for(
    tmp_path: Path, write_folders: Callable[..., Path]
) -> None:
    made, door = side(tmp_path, write_folders, to=TRAIN)
    made.set_labels(np.arange(0), np.zeros((0, 2), dtype=np.float32), np.arange(NODES))
    made.begin_stage(0)
    made.begin_stage(1)
    assert door.account.releases == 1


def test_the_poll_is_within_the_budget() -> None:
    sizes = PublicSizes(num_nodes=NODES, num_train=TRAIN, num_features=1, num_classes=3)
    for epsilon in (0.05, 0.25, 4.0, 32.0):
        config = load_config(None, {"epsilon": epsilon})
        noise_plan = find_method("certified").noise_plan(config, sizes)
        quiet = load_config(None, {"epsilon": epsilon, "label_messages": False})
        without = find_method("certified").noise_plan(quiet, sizes)
        assert noise_plan.probe_noise_std is not None
        assert without.probe_noise_std is None
        spent = sum(noise_std**-2 for noise_std in noise_plan.all_noise_stds)
        whole = sum(noise_std**-2 for noise_std in without.all_noise_stds)
        assert spent == pytest.approx(whole, rel=1e-9)  # all of it, and no more
        assert noise_plan.noise_stds[0] < 1.07 * without.noise_stds[0]


def test_fewer_neighbours_are_no_other_window() -> None:
    rng, noise_std = np.random.default_rng(0), 3.0
    alike = {"fewer neighbours": 0, "another window": 0, "no neighbours": 0}
    for _ in range(100):
        ours = (rng.poisson(8, 400) + rng.normal(0, noise_std, 400)).astype("f4")
        for what, theirs in zip(alike, (2.4, 0.4, 0.0), strict=True):
            heard = (rng.poisson(theirs, 400) + rng.normal(0, noise_std, 400)).astype("f4")
            ratio = 0.3 if theirs else 0.0
            assert not label_reach(ours, heard, noise_std=noise_std).similar
            found = label_reach_by_degree(ours, heard, ratio=ratio, noise_std=noise_std)
            alike[what] += found is not None and found.similar
    assert alike["fewer neighbours"] == 100
    assert alike["another window"] <= 5
    assert alike["no neighbours"] <= 6
