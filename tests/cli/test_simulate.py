"""`vesper simulate` with input that cannot be used: one message, its exit code, nothing left."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vesper.run.simulate

NUM_NODES = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sixty nodes, two classes, twenty nodes a split."""
    rng = np.random.default_rng(0)
    (tmp_path / "in" / "data").mkdir(parents=True)
    (tmp_path / "in" / "label").mkdir()
    ids = np.arange(NUM_NODES)
    nodes = {"id": ids, "f0": rng.normal(size=NUM_NODES), "f1": rng.normal(size=NUM_NODES)}
    pq.write_table(pa.table(nodes), tmp_path / "in" / "data" / "nodes.parquet")
    edges = {"src": rng.integers(0, 60, size=90), "dst": rng.integers(0, 60, size=90)}
    pq.write_table(pa.table(edges), tmp_path / "in" / "data" / "edges.parquet")
    write_labels(tmp_path / "in", [("train", "val", "test")[k // 2 % 3] for k in range(NUM_NODES)])
    return tmp_path / "in"


def write_labels(folder: Path, splits: list[str], *, only_zero_in: str = "") -> None:
    labels = [0 if split == only_zero_in else k % 2 for k, split in enumerate(splits)]
    table = {"id": np.arange(NUM_NODES), "label": labels, "split": splits}
    pq.write_table(pa.table(table), folder / "label" / "labels.parquet")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--epsilon", "1e6"), "epsilon: 1e+06 at delta 0.001 needs a noise of 0.001417"),
        (("--epsilon", "1e-3", "--delta", "1e-12"), "use a larger epsilon or fewer hops"),
        (("--seed", "99999999999999999999999"), "'run.seed': Input should be less than"),
        (("--set", "foo=1"), "unknown setting 'foo'; known are epsilon"),
        (("--set", "method=nope"), "--method: expected one of vesper"),
    ],
)
def test_settings_out_of_reach(
    terminal: Any, folder: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    assert terminal.run("simulate", "--data", folder, "--out", tmp_path / "run", *options) == 2
    assert message in terminal.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("missing", ["train", "val", "test"])
def test_a_split_without_rows(terminal: Any, folder: Path, tmp_path: Path, missing: str) -> None:
    rest = [split for split in ("train", "val", "test") if split != missing]
    write_labels(folder, [rest[k // 2 % 2] for k in range(NUM_NODES)])
    assert terminal.run("simulate", "--data", folder, "--out", tmp_path / "run") == 2
    assert f"labels.parquet, column split: expected some rows with '{missing}'" in terminal.err


@pytest.mark.parametrize("split", ["val", "test"])
def test_a_split_with_one_class(terminal: Any, folder: Path, tmp_path: Path, split: str) -> None:
    splits = [("train", "val", "test")[k // 2 % 3] for k in range(NUM_NODES)]
    write_labels(folder, splits, only_zero_in=split)
    assert terminal.run("simulate", "--data", folder, "--out", tmp_path / "run") == 2
    assert f"two different labels among rows with split '{split}', found one" in terminal.err


def test_no_features(terminal: Any, folder: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": np.arange(NUM_NODES)}), folder / "data" / "nodes.parquet")
    assert terminal.run("simulate", "--data", folder, "--out", tmp_path / "run") == 2
    assert "expected at least one feature column" in terminal.err


def test_out_that_cannot_be_a_folder(terminal: Any, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "run"
    assert terminal.run("simulate", "--data", folder, "--out", out) == 2
    assert "cannot be written" in terminal.err


def test_a_last_batch_of_one_row(terminal: Any, folder: Path, tmp_path: Path) -> None:
    small = ("--set", "epochs=1", "--set", "batch_size=19")
    out = tmp_path / "run"
    for method in ("gap", "progap"):
        arguments = ("--data", folder, "--method", method, "--out", out / method, *small)
        assert terminal.run("simulate", *arguments) == 0


def test_a_run_that_fails_leaves_nothing(
    terminal: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*arguments: object, **options: object) -> None:
        raise vesper.VesperError("stopped in the middle")

    monkeypatch.setattr(vesper.run.simulate, "train", stop)
    assert terminal.run("simulate", "--data", folder, "--out", tmp_path / "run") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
