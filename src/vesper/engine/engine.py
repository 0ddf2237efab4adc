"""Interface of an engine: it makes calls on workers, one at a time on each, and returns results.

    with using(engine):        heavy work goes to the workers of the engine
        ...                    current_engine() returns it; None: work stays in this process

An engine decides where and how fast numbers are computed, never their values. When a worker dies
during a call, the call is made again, so a function must return the same for the same arguments.
Workers belong to the party that runs the engine: they see what it sees.

`InProcessEngine` has no workers of its own and makes all calls in this process, for tests and
debugging. Its arguments go through pickle, as on their way to a real worker, and the last call is
made first: code that relies on shared memory or on the order of calls fails here.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Call:
    """One call of a function on a worker.

    Args:
        worker: number of the worker, from 0.
        function: a function of this package, at the top level of its module.
        arguments: values, or what `Engine.share` returned for values.
    """

    worker: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Engine(Protocol):
    """Makes calls on workers, which are numbered from 0."""

    @property
    def num_workers(self) -> int:
        """Number of workers."""

    def is_local(self, worker: int) -> bool:
        """Whether a worker is on this machine and can open the same files."""

    def share(self, value: Any) -> Any:
        """Send a value once to every machine; the returned reference replaces it in calls."""

    def results(self, calls: Iterable[Call]) -> Iterator[tuple[int, Any]]:
        """Make all calls; yield results as they arrive, each with the number of its call.

        Raises:
            VesperError: a call was given up because workers died too often.
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
    """Return the engine that heavy work goes to; None if it stays in this process."""
    return _stack[-1] if _stack else None


class InProcessEngine:
    """Engine of any number of workers, all of which are this process.

    Args:
        num_workers: number of workers that it reports.
        local: whether they count as able to open the files of this machine.
    """

    def __init__(self, num_workers: int, *, local: bool = False) -> None:
        self.num_workers, self._is_local = num_workers, local
        self.calls_made: list[Call] = []
        """All calls so far, as the workers received them."""

    def is_local(self, worker: int) -> bool:
        """Return what the constructor was given."""
        return self._is_local

    def share(self, value: Any) -> Any:
        """Return the value itself."""
        return value

    def results(self, calls: Iterable[Call]) -> Iterator[tuple[int, Any]]:
        """Make all calls, the last one first."""
        for number, call in reversed(list(enumerate(calls))):
            sent: Call = pickle.loads(pickle.dumps(call))
            self.calls_made.append(sent)
            yield number, sent.function(*sent.arguments)
