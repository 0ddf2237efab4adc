"""An id that was answered about keeps its label, or is refused."""

from pathlib import Path

import numpy as np
import pytest

from vesper.errors import InputError, VesperError
from vesper.mechanism.labels_shown import LabelsShown

KEY = b"k" * 32
LABELS = np.array([0, 1, 2])


def test_parts_and_more_are_welcome_and_changes_are_not(tmp_path: Path) -> None:
    shown = LabelsShown(tmp_path / "shown", key=KEY)
    shown.add("t1", ["a", "b", "c"], LABELS)
    shown.add("t2", ["c", "x"], np.array([2, 0]))
    shown.add("t1", ["a", "b", "c"], LABELS)  # known by its name
    with pytest.raises(InputError, match=r"2 ids have another label .*id b, id c"):
        shown.add("t3", ["a", "b", "c"], np.array([0, 0, 1]))
    with pytest.raises(InputError, match=r"1 ids have another label .*id x"):
        shown.add("t3", ["a", "x"], np.array([0, 1]))
    assert sorted(path.name for path in (tmp_path / "shown").iterdir()) == ["t1.npz", "t2.npz"]


def test_digests_need_the_key(tmp_path: Path) -> None:
    for key in (KEY, b"l" * 32):
        LabelsShown(tmp_path / key[:1].decode(), key=key).add("t", ["a", "b", "c"], LABELS)
    one, other = (np.load(tmp_path / name / "t.npz") for name in "kl")
    assert not set(one["ids"]) & set(other["ids"])
    assert not set(one["records"].tolist()) & set(other["records"].tolist())


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "shown").write_text("a file")
    with pytest.raises(VesperError, match="cannot be written"):
        LabelsShown(tmp_path / "shown", key=KEY).add("t", ["a", "b", "c"], LABELS)
