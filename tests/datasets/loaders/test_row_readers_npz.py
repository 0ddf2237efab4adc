"""Blocks concatenate to the array, objects are never unpickled, broken files are named."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from vesper.datasets.loaders.row_readers import NpzRows
from vesper.errors import InputError


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_blocks_concatenate_to_the_array(tmp_path: Path, order: str, save: object) -> None:
    x = np.asarray(np.random.default_rng(0).random((11, 3)), order="F" if order == "F" else "C")
    assert callable(save)
    save(tmp_path / "a.npz", x=x, y=np.arange(4, dtype=np.int32))
    npz = NpzRows(tmp_path / "a.npz")
    assert npz.shape("x") == (11, 3)
    assert (np.concatenate(list(npz.blocks("x", rows_at_once=4))) == x).all()
    assert npz.whole("y").tolist() == [0, 1, 2, 3]


def test_blocks_have_the_requested_length(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros(10))
    blocks = NpzRows(tmp_path / "a.npz").blocks("x", rows_at_once=4)
    assert [len(block) for block in blocks] == [4, 4, 2]


def test_no_rows_is_one_empty_block(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros((0, 3)))
    assert NpzRows(tmp_path / "a.npz").whole("x").shape == (0, 3)


def test_objects_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError, match="expected rows of plain numbers, found object"):
        NpzRows(tmp_path / "a.npz").whole("x")


def test_a_missing_array_is_refused_with_those_present(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", feature=np.zeros(1), label=np.zeros(1))
    with pytest.raises(InputError, match="expected an array 'row', found feature, label"):
        NpzRows(tmp_path / "a.npz").shape("row")


def test_missing_and_mislabelled_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected this file, found none"):
        NpzRows(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("not a zip")
    with pytest.raises(InputError, match=r"text\.npz: not an \.npz file"):
        NpzRows(tmp_path / "text.npz")


def test_a_short_array_and_a_bad_header_are_named(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(100))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("short.npy", buffer.getvalue()[:-8])
        archive.writestr("false.npy", b"nothing of numpy")
    npz = NpzRows(tmp_path / "a.npz")
    with pytest.raises(InputError, match=r"array 'short': not readable \(the file ends too early"):
        npz.whole("short")
    with pytest.raises(InputError, match="array 'false': not readable"):
        npz.whole("false")
