"""An engine without workers of its own: calls are made in this process, for tests and for looking.

Arguments go through pickle, as they would on their way to a worker, and the last call is made
first: who relies on sharing memory, or on the order, finds out here.
"""

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

from vesper.engine.engine import Call


class InProcessEngine:
    """As many workers as one likes, all of them this process.

    Args:
        num_workers: how many to pretend.
        near: whether they can open the files of this machine.
    """

    def __init__(self, num_workers: int, *, near: bool = False) -> None:
        self.num_workers, self._near = num_workers, near
        self.made: list[Call] = []
        """All calls, as workers got them."""

    def is_near(self, worker: int) -> bool:
        """As told."""
        return self._near

    def share(self, value: Any) -> Any:
        """Give the value itself."""
        return value

    def results(self, calls: Iterable[Call]) -> Iterator[tuple[int, Any]]:
        """Make all calls, the last one first."""
        for number, call in reversed(list(enumerate(calls))):
            sent: Call = pickle.loads(pickle.dumps(call))
            self.made.append(sent)
            yield number, sent.function(*sent.arguments)
