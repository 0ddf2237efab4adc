import pytest

from vesper.engine.engine import InProcessEngine, current_engine, using


def test_work_stays_in_this_process_unless_an_engine_is_used() -> None:
    outer, inner = InProcessEngine(1), InProcessEngine(1)
    assert current_engine() is None
    with using(outer):
        with using(inner):
            assert current_engine() is inner
        assert current_engine() is outer
    assert current_engine() is None


def test_an_error_ends_the_use_of_an_engine() -> None:
    with pytest.raises(ZeroDivisionError), using(InProcessEngine(1)):
        raise ZeroDivisionError
    assert current_engine() is None
