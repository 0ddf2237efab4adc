from typing import Any

import pytest

from vesper.engine.choice import EngineName, use_engine
from vesper.engine.engine import InProcessEngine, current_engine
from vesper.errors import InputError


def test_local_is_this_process() -> None:
    with use_engine(EngineName.LOCAL):
        assert current_engine() is None


@pytest.mark.parametrize("options", [{"address": "auto"}, {"num_workers": 2}])
def test_options_of_ray_are_refused_for_other_engines(options: dict[str, Any]) -> None:
    with (
        pytest.raises(InputError, match="expected engine 'ray'"),
        use_engine(EngineName.LOCAL, **options),
    ):
        pass


def test_ray_gets_the_options_of_the_user_and_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    options, closed = [], []

    class Engine(InProcessEngine):
        def __init__(self, *, address: str | None, num_workers: int | None) -> None:
            super().__init__(1)
            options.append((address, num_workers))

        def __enter__(self) -> "Engine":
            return self

        def __exit__(self, *exception: object) -> None:
            closed.append(current_engine())

    monkeypatch.setattr("vesper.engine.ray_engine.RayEngine", Engine)
    reports: list[tuple[str, int, int]] = []
    with use_engine(
        EngineName.RAY,
        address="head:6379",
        num_workers=3,
        progress=lambda task, done, total, note="": reports.append((task, done, total)),
    ):
        assert isinstance(current_engine(), Engine)
    assert reports == [("starting workers", 0, 1), ("starting workers", 1, 1)]
    assert options == [("head:6379", 3)]
    assert closed == [None]
