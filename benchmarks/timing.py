"""Timing of a contender: wall-clock and CPU seconds of every turn."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter, process_time
from typing import TypeVar

T = TypeVar("T")


@dataclass(kw_only=True)
class Timing:
    """Wall-clock and CPU seconds of all turns of one contender."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def clock(self, work: Callable[[], T]) -> T:
        """Do the work once and record its time; returns its result."""
        wall, cpu = perf_counter(), process_time()
        result = work()
        self.cpu.append(process_time() - cpu)
        self.wall.append(perf_counter() - wall)
        return result

    def best(self) -> float:
        return min(self.wall)

    def median(self) -> float:
        return median(self.wall)

    def median_cpu(self) -> float:
        return median(self.cpu)

    def faster_than(self, other: "Timing", *, digits: int = 1) -> str:
        """Factor by which this is faster than another, in the best and in the median turn.

        >>> Timing(wall=[1.0, 2.0, 3.0]).faster_than(Timing(wall=[4.0, 4.0, 6.0]))
        '4.0 x / 2.0 x'
        """
        best, middle = other.best() / self.best(), other.median() / self.median()
        return f"{best:.{digits}f} x / {middle:.{digits}f} x"
