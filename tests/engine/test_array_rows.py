import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vesper.engine.array_rows import MappedRows, opened, rows_for
from vesper.engine.engine import Call

ROWS = np.arange(60, dtype=np.int32).reshape(20, 3)


class Workers:
    """Worker 0 is near, worker 1 is far."""

    num_workers = 2

    def is_near(self, worker: int) -> bool:
        return worker == 0

    def share(self, value: Any) -> Any:
        return value

    def results(self, calls: Iterable[Call]) -> Iterator[tuple[int, Any]]:
        return iter([])


@pytest.fixture
def mapped(tmp_path: Path) -> Any:
    np.save(tmp_path / "rows.npy", ROWS)
    return np.load(tmp_path / "rows.npy", mmap_mode="r")


@pytest.mark.parametrize(("start", "stop"), [(0, 20), (7, 13), (5, 5), (20, 20)])
@pytest.mark.parametrize("worker", [0, 1])
def test_a_worker_opens_the_very_rows(mapped: Any, start: int, stop: int, worker: int) -> None:
    sent = pickle.loads(pickle.dumps(rows_for(Workers(), worker, mapped, start, stop)))
    assert isinstance(sent, MappedRows) == (worker == 0)
    assert np.array_equal(opened(sent), ROWS[start:stop])
    assert type(opened(sent)) is np.ndarray


def test_what_is_not_whole_in_a_file_is_sent(mapped: Any, tmp_path: Path) -> None:
    for array in (ROWS, mapped[2:], mapped[::2]):
        sent = rows_for(Workers(), 0, array, 1, 4)
        assert np.array_equal(sent, array[1:4])
        assert not isinstance(sent, MappedRows)
    (tmp_path / "rows.npy").unlink()
    assert np.array_equal(rows_for(Workers(), 0, mapped, 1, 4), ROWS[1:4])
