"""`vesper simulate` with unusable input: one message, its exit code, no output left."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import vesper.simulation.simulate

NUM_NODES = 60


SPLITS = [("train", "val", "test")[k // 2 % 3] for k in range(NUM_NODES)]


@pytest.fixture
def folder(tmp_path: Path, write_folders: Callable[..., Path]) -> Path:
    """Sixty nodes, two classes, twenty nodes per split."""
    rng = np.random.default_rng(0)
    features = {f"f{k}": rng.normal(size=NUM_NODES) for k in range(2)}
    return write_folders(
        tmp_path / "in",
        nodes={"id": range(NUM_NODES), **features},
        edges={"src": rng.integers(0, 60, size=90), "dst": rng.integers(0, 60, size=90)},
        labels=labels_of(SPLITS),
    )


def labels_of(
    splits: list[str], *, only_zero_in: str = "", others: Mapping[int, int] = MappingProxyType({})
) -> dict[str, object]:
    labels = [0 if split == only_zero_in else k % 2 for k, split in enumerate(splits)]
    labels = [others.get(k, label) for k, label in enumerate(labels)]
    return {"id": range(NUM_NODES), "label": labels, "split": splits}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--epsilon", "1e6"), "epsilon: 1e+06 at delta 0.001 needs noise of std 0.001424"),
        (("--epsilon", "1e-3", "--delta", "1e-12"), "use a larger epsilon or fewer hops"),
        (("--seed", "99999999999999999999999"), "'run.seed': Input should be less than"),
        (("--set", "foo=1"), "unknown setting 'foo'; known are epsilon"),
        (("--set", "method=nope"), "method: expected one of certified"),
        (("--set", "epsilon=true"), "'privacy.epsilon': expected a number or a name, got True"),
        (("--set", "epochs=true"), "'run.epochs': expected a number or a name, got True"),
        (("--set", "members=0"), "'run.members': Input should be greater than or equal to 1"),
        (("--ray-workers", "2"), "expected engine 'ray' with them"),
        (("--engine", "ray", "--ray-address", "ray://head:1"), "ray address: expected host:port"),
    ],
)
def test_settings_out_of_reach(
    terminal: Any, folder: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    assert terminal.run("simulate", "--data", folder, "--out", tmp_path / "run", *options) == 2
    assert message in terminal.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("missing", ["train", "val", "test"])
def test_a_split_without_rows(
    terminal: Any, folder: Path, tmp_path: Path, write_folders: Any, missing: str
) -> None:
    rest = [split for split in ("train", "val", "test") if split != missing]
    write_folders(folder, labels=labels_of([rest[k // 2 % 2] for k in range(NUM_NODES)]))
    assert terminal.run("simulate", "--data", folder, "--out", tmp_path / "run") == 2
    assert f"labels.parquet, column split: expected some rows with '{missing}'" in terminal.err


@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_a_split_with_one_class(
    terminal: Any, folder: Path, tmp_path: Path, write_folders: Any, split: str
) -> None:
    write_folders(folder, labels=labels_of(SPLITS, only_zero_in=split))
    assert terminal.run("simulate", "--data", folder, "--out", tmp_path / "run") == 2
    assert "two different labels among" in terminal.err
    assert f"rows with split '{split}', found one" in terminal.err


def test_a_third_class_that_only_test_rows_have(
    terminal: Any, folder: Path, tmp_path: Path, write_folders: Any
) -> None:
    """It would make three classes, with another metric; test rows must not decide anything."""
    odd = SPLITS.index("test")
    write_folders(folder, labels=labels_of(SPLITS, others={odd: 7}))
    assert terminal.run("simulate", "--data", folder, "--out", tmp_path / "run") == 2
    assert "column label: expected the two classes of rows with split" in terminal.err
    assert f"1 rows with split 'test' and another label (first 1: '7' of id {odd})" in terminal.err
    assert not (tmp_path / "run").exists()


def test_one_of_many_classes_may_be_in_test_rows_only(
    terminal: Any, folder: Path, tmp_path: Path, write_folders: Any
) -> None:
    others = {SPLITS.index(split): 7 if split == "test" else 2 for split in set(SPLITS)}
    write_folders(folder, labels=labels_of(SPLITS, others=others))
    options = ("--set", "epochs=1", "--set", "width=4")
    assert terminal.run("simulate", "--data", folder, "--out", tmp_path / "run", *options) == 0


def test_no_features(terminal: Any, folder: Path, tmp_path: Path, write_folders: Any) -> None:
    write_folders(folder, nodes={"id": range(NUM_NODES)})
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


def test_a_failed_run_leaves_no_output(
    terminal: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*arguments: object, **options: object) -> None:
        raise vesper.VesperError("stopped in the middle")

    monkeypatch.setattr(vesper.simulation.simulate, "train_all_parties", stop)
    assert terminal.run("simulate", "--data", folder, "--out", tmp_path / "run") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
