from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from vesper.engine.engine import Call, in_use, using


class Nowhere:
    num_workers = 0

    def is_near(self, worker: int) -> bool:
        return False

    def share(self, value: Any) -> Any:
        return value

    def results(self, calls: Iterable[Call]) -> Iterator[tuple[int, Any]]:
        return iter([])


def test_work_stays_here_unless_an_engine_is_used() -> None:
    outer, inner = Nowhere(), Nowhere()
    assert in_use() is None
    with using(outer):
        with using(inner):
            assert in_use() is inner
        assert in_use() is outer
    assert in_use() is None


def test_an_error_ends_the_use_of_an_engine() -> None:
    with pytest.raises(ZeroDivisionError), using(Nowhere()):
        raise ZeroDivisionError
    assert in_use() is None
