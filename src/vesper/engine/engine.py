"""What an engine does: make calls on workers, each worker one after the other, and bring results.

    with using(engine):        from here on heavy work goes to its workers
        ...                    current_engine() is it; without one, None: work stays in this process

An engine decides where numbers are made and how fast, never which. A worker may die with a call in
hand; the call is then made again, so a function must give the same whenever its arguments are.
Workers belong to the party that runs the engine: they see what it sees.

An engine without workers of its own: calls are made in this process, for tests and for looking.

Arguments go through pickle, as they would on their way to a worker, and the last call is made
first: who relies on sharing memory, or on the order, finds out here.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Call:
    """One piece of work.

    Args:
        worker: who does it, from 0.
        function: of this package, at the top level of its module.
        arguments: values, or what `Engine.share` gave for values.
    """

    worker: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Engine(Protocol):
    """Workers, numbered from 0."""

    @property
    def num_workers(self) -> int:
        """How many there are."""

    def is_local(self, worker: int) -> bool:
        """Whether a worker is on this machine and can open the same files."""

    def share(self, value: Any) -> Any:
        """Give a value to all workers, once a machine; what comes back stands for it in calls."""

    def results(self, calls: Iterable[Call]) -> Iterator[tuple[int, Any]]:
        """Make all calls; give results as they come, each with the number of its call.

        Raises:
            VesperError: workers have died so often that a call was given up.
        """


_stack: list[Engine] = []


@contextmanager
def using(engine: Engine) -> Iterator[None]:
    """Send the heavy work of this process to an engine."""
    _stack.append(engine)
    try:
        yield
    finally:
        _stack.remove(engine)


def current_engine() -> Engine | None:
    """The engine that heavy work goes to; None: it stays in this process."""
    return _stack[-1] if _stack else None


class InProcessEngine:
    """As many workers as one likes, all of them this process.

    Args:
        num_workers: how many to pretend.
        local: whether they can open the files of this machine.
    """

    def __init__(self, num_workers: int, *, local: bool = False) -> None:
        self.num_workers, self._near = num_workers, local
        self.calls_made: list[Call] = []
        """All calls, as workers got them."""

    def is_local(self, worker: int) -> bool:
        """As told."""
        return self._near

    def share(self, value: Any) -> Any:
        """Give the value itself."""
        return value

    def results(self, calls: Iterable[Call]) -> Iterator[tuple[int, Any]]:
        """Make all calls, the last one first."""
        for number, call in reversed(list(enumerate(calls))):
            sent: Call = pickle.loads(pickle.dumps(call))
            self.calls_made.append(sent)
            yield number, sent.function(*sent.arguments)
