import pytest

from vesper.engine.engine import InProcessEngine, in_use, using


def test_work_stays_here_unless_an_engine_is_used() -> None:
    outer, inner = InProcessEngine(1), InProcessEngine(1)
    assert in_use() is None
    with using(outer):
        with using(inner):
            assert in_use() is inner
        assert in_use() is outer
    assert in_use() is None


def test_an_error_ends_the_use_of_an_engine() -> None:
    with pytest.raises(ZeroDivisionError), using(InProcessEngine(1)):
        raise ZeroDivisionError
    assert in_use() is None
