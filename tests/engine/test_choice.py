from typing import Any

import pytest

from vesper.engine.choice import EngineName, use_engine
from vesper.engine.engine import InProcessEngine, current_engine
from vesper.errors import InputError


def test_local_is_this_process() -> None:
    with use_engine(EngineName.LOCAL):
        assert current_engine() is None


@pytest.mark.parametrize("given", [{"address": "auto"}, {"num_workers": 2}])
def test_what_is_for_ray_goes_with_ray_only(given: dict[str, Any]) -> None:
    with (
        pytest.raises(InputError, match="expected engine 'ray'"),
        use_engine(EngineName.LOCAL, **given),
    ):
        pass


def test_ray_is_asked_for_as_the_user_said_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, closed = [], []

    class Engine(InProcessEngine):
        def __init__(self, *, address: str | None, num_workers: int | None) -> None:
            super().__init__(1)
            asked.append((address, num_workers))

        def __enter__(self) -> "Engine":
            return self

        def __exit__(self, *exception: object) -> None:
            closed.append(current_engine())

    monkeypatch.setattr("vesper.engine.ray_engine.RayEngine", Engine)
    told: list[tuple[str, int, int]] = []
    with use_engine(
        EngineName.RAY,
        address="head:6379",
        num_workers=3,
        progress=lambda task, done, total, note="": told.append((task, done, total)),
    ):
        assert isinstance(current_engine(), Engine)
    assert told == [("starting workers", 0, 1), ("starting workers", 1, 1)]
    assert asked == [("head:6379", 3)]
    assert closed == [None]
