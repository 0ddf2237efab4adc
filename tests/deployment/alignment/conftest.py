"""Both ends of an alignment in one process, and a peer that sends anything."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from vesper.errors import PeerError
from vesper.transport.memory import MemoryChannel, memory_pair

Side = Callable[[MemoryChannel], Any]
RunBoth = Callable[[Side, Side], list[Any]]
Hostile = Callable[..., Side]


@pytest.fixture(scope="session")
def run_both() -> RunBoth:
    """Run a data side and a label side; return what each returned or raised."""

    def run(side: Side, end: MemoryChannel) -> Any:
        try:
            return side(end)
        except Exception as error:
            return error
        finally:
            end.close()

    def both(data_side: Side, label_side: Side) -> list[Any]:
        with ThreadPoolExecutor(2) as pool:
            pairs = zip((data_side, label_side), memory_pair(patience=30), strict=True)
            running = [pool.submit(run, *pair) for pair in pairs]
            return [future.result() for future in running]

    return both


@pytest.fixture(scope="session")
def hostile() -> Hostile:
    """Make a peer that sends these frames, whatever it receives."""

    def sending(*frames: bytes) -> Side:
        def side(end: MemoryChannel) -> None:
            for frame in frames:
                end.send(frame)
            try:
                while True:
                    end.receive()
            except PeerError:
                return

        return side

    return sending
