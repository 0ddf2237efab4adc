import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vesper.engine.array_rows import MappedRows, as_array, rows_for
from vesper.engine.engine import InProcessEngine
from vesper.errors import VesperError

ROWS = np.arange(60, dtype=np.int32).reshape(20, 3)


LOCAL, REMOTE = InProcessEngine(1, local=True), InProcessEngine(1, local=False)


@pytest.fixture
def mapped(tmp_path: Path) -> Any:
    np.save(tmp_path / "rows.npy", ROWS)
    return np.load(tmp_path / "rows.npy", mmap_mode="r")


@pytest.mark.parametrize(("start", "stop"), [(0, 20), (7, 13), (5, 5), (20, 20)])
@pytest.mark.parametrize("engine", [LOCAL, REMOTE], ids=["local", "remote"])
def test_a_worker_gets_exactly_these_rows(
    mapped: Any, start: int, stop: int, engine: InProcessEngine
) -> None:
    sent = pickle.loads(pickle.dumps(rows_for(engine, 0, mapped, start, stop)))
    assert isinstance(sent, MappedRows) == (engine is LOCAL)
    assert np.array_equal(as_array(sent), ROWS[start:stop])
    assert type(as_array(sent)) is np.ndarray


def test_arrays_that_are_not_a_whole_file_are_sent(mapped: Any, tmp_path: Path) -> None:
    for array in (ROWS, mapped[2:], mapped[::2]):
        sent = rows_for(LOCAL, 0, array, 1, 4)
        assert np.array_equal(sent, array[1:4])
        assert not isinstance(sent, MappedRows)
    dangling = rows_for(LOCAL, 0, mapped, 1, 4)
    (tmp_path / "rows.npy").unlink()
    with pytest.raises(VesperError, match=r"rows\.npy: a worker cannot map this file"):
        as_array(dangling)
    assert np.array_equal(rows_for(LOCAL, 0, mapped, 1, 4), ROWS[1:4])
