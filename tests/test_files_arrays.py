"""Reading arrays in several threads at once."""

import gc
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pytest

import vesper
from vesper.files import map_array, read_arrays


@pytest.fixture
def collecting_lets_others_run() -> Iterator[None]:
    """Garbage is collected constantly, and other threads run during collections."""

    def let_others_run(phase: str, info: dict[str, int]) -> None:
        time.sleep(1e-5)

    before = gc.get_threshold()
    gc.callbacks.append(let_others_run)
    gc.set_threshold(5, 1_000_000, 1_000_000)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(let_others_run)


def at_depth(frames: int, act: Callable[[], Any]) -> Any:
    """Call `act` below that many frames, so that threads differ in recursion depth."""
    return at_depth(frames - 1, act) if frames else act()


@pytest.mark.usefixtures("collecting_lets_others_run")
@pytest.mark.parametrize("read", [lambda path: read_arrays(path)["rows"], map_array])
def test_threads_may_read_at_once(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    rows = np.arange(6.0).reshape(2, 3)
    path = tmp_path / "stored"
    with path.open("wb") as file:
        if read is map_array:
            np.save(file, rows)
        else:
            np.savez(file, rows=rows)

    def often() -> None:
        for _ in range(100):
            assert np.array_equal(read(path), rows)

    with ThreadPoolExecutor(4) as pool:
        for reading in [pool.submit(at_depth, 10 * number, often) for number in range(4)]:
            reading.result()


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "objects.npz", rows=np.array([object()]))
    with pytest.raises(ValueError, match="pickle"):
        read_arrays(tmp_path / "objects.npz")
    np.save(tmp_path / "objects.npy", np.array([{}]))
    with pytest.raises(ValueError, match="Python objects"):
        map_array(tmp_path / "objects.npy")


def test_no_other_module_calls_np_load() -> None:
    source = Path(vesper.__file__).parent
    readers = [path.name for path in source.rglob("*.py") if "np.load(" in path.read_text()]
    assert readers == ["files.py"]


DAMAGE = {
    "version of the archive": (b"PK\x01\x02", 6, b"\xff"),
    "encrypted": (b"PK\x01\x02", 8, b"\x01"),
    "way of compression": (b"PK\x01\x02", 10, b"\x63"),
    "compressed bytes": (b"PK\x03\x04", 60, b"\xff\xff\xff\xff"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_archive_is_a_value_error_or_no_archive(tmp_path: Path, what: str) -> None:
    path, (sign, offset, damage) = tmp_path / "stored.npz", DAMAGE[what]
    np.savez_compressed(path, rows=np.arange(300))
    content = bytearray(path.read_bytes())
    at = content.index(sign) + offset
    content[at : at + len(damage)] = damage
    path.write_bytes(content)
    with pytest.raises((ValueError, BadZipFile)):
        read_arrays(path)


def test_a_damaged_header_is_a_value_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, np.arange(300))
    path.write_bytes(path.read_bytes().replace(b"}", b"(", 1))
    with pytest.raises(ValueError, match=r"damaged|header"):
        map_array(path)
