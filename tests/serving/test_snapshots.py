"""Two windows over a network and in a simulation: the same metric, and budgets in every report."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.deployment.saved_run import read_saved_label_run
from vesper.report.board_page import board_main
from vesper.report.contents import contents_of_run
from vesper.report.graphs import graph_lines
from vesper.report.live_run import read_run_status
from vesper.report.page import render
from vesper.serving.embedding_cache import read_graph_notes
from vesper.serving.prediction_tables import read_truth
from vesper.serving.snapshots import SnapshotStore
from vesper.simulation.simulate import simulate
from vesper.simulation.snapshot_run import SNAPSHOT_SEED_OFFSET

if TYPE_CHECKING:
    from tests.fixtures.finished_run import FinishedRun, Train

SEED = 1


@pytest.fixture
def finished(train: "Train") -> "FinishedRun":
    """A run trained with the noise of a simulation with the same seed."""
    return train(seed=SEED, hops=1)


@pytest.fixture
def window(finished: "FinishedRun") -> Path:
    """Party folders of a later window, whose labels are all in split `test`."""
    folder = finished.root / "window"
    data = finished.snapshot("window/data", gone=5)
    ids = pq.read_table(data / "nodes.parquet")["id"].to_pylist()
    labels = {"id": ids, "label": [k // 2 % 2 for k in range(len(ids))], "split": "test"}
    (folder / "label").mkdir()
    columns = {**labels, "split": ["test"] * len(ids)}
    pq.write_table(pa.table(columns), folder / "label" / "labels.parquet")
    return folder


def test_a_simulation_and_two_parties_measure_the_same(
    finished: "FinishedRun", window: Path
) -> None:
    shared, path = finished.label.shared, window / "label" / "labels.parquet"
    simulated = simulate(finished.root, shared, finished.root / "run", snapshots=[window])
    stage, truth = read_saved_label_run(finished.label).stage, read_truth(path)
    assert simulated.chosen_stage == stage
    with finished.open_predictor(
        snapshot=window / "data", seed=SEED + SNAPSHOT_SEED_OFFSET
    ) as predictor:
        predictions = predictor.predict(list(truth), limit=20)
        test = predictor.evaluate(predictions, truth, path=path)
    assert test == simulated.snapshots[0].test
    assert predictor.metric == simulated.metric == "roc_auc"
    assert predictions.budget is not None
    assert predictions.budget["spent_epsilon"] == simulated.snapshots[0].spent_epsilon


def test_every_report_has_a_line_per_graph(finished: "FinishedRun", window: Path) -> None:
    truth = read_truth(window / "label" / "labels.parquet")
    with finished.open_predictor(snapshot=window / "data", stage=1) as predictor:
        predictions = predictor.predict(list(truth), limit=20)
        test = predictor.evaluate(predictions, truth, path=window)
    label, data = finished.label.party.state, finished.data.party.state
    (name,) = read_graph_notes(label / "cache")
    assert test is not None
    page = render(contents_of_run(label))
    assert "Budget of each graph" in page
    words = re.sub(r"<[^>]*>", " ", page).split()
    at = words.index(name[:8])
    assert words[at - 1 : at + 4] == ["graph", name[:8], f"{test:.1f}", "%", "8"]
    result = json.loads((data / "result" / "result.json").read_text())
    lines = graph_lines(data, result, run_charges=None, ledger=finished.ledger)
    assert [line.name for line in lines] == ["training", "data"]
    assert lines[1].spent_epsilon == pytest.approx(8.0, rel=1e-3)
    assert (lines[1].epsilon, lines[1].nodes, lines[1].releases) == (8.0, 60, 1)
    assert "Budget of each graph" in board_main(read_run_status(data))


def test_without_snapshots_there_is_no_such_table(finished: "FinishedRun") -> None:
    assert "Budget of each graph" not in render(contents_of_run(finished.label.party.state))
    assert read_run_status(finished.data.party.state).graphs == ()


def test_nothing_is_measured_while_answers_are_missing(
    finished: "FinishedRun", window: Path
) -> None:
    truth = read_truth(window / "label" / "labels.parquet")
    with finished.open_predictor(snapshot=window / "data") as predictor:
        predictions = predictor.predict(list(truth)[:3], limit=20)
        assert predictor.evaluate(predictions, truth, path=window) is None
        with_unknown = {**dict(list(truth.items())[:3]), "nobody": 1}
        predictions = predictor.predict(list(with_unknown), limit=20)
        assert predictor.evaluate(predictions, with_unknown, path=window) is not None


def test_what_a_killed_process_has_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path / "snapshots")
    half, other = tmp_path / "snapshots" / ("0" * 32), tmp_path / "snapshots" / ("1" * 32)
    half.mkdir(parents=True)
    (half / "snapshot.json.0123abcd.partial").write_text("{")
    (other / "releases").mkdir(parents=True)
    made = store.find_or_add("payments", "digest", folder=tmp_path)
    assert {path.name for path in (tmp_path / "snapshots").iterdir()} == {made.name, other.name}
