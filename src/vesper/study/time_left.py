"""How long a study will still take."""

from collections.abc import Iterable

from vesper.study.cell import Cell, Line


class Expected:
    """How long a cell will take: as others of its set and method, or of its set, or any."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._lines = list(lines)
        self._spent = 0.0

    def learn(self, line: Line) -> None:
        """Take note of a cell that is finished."""
        self._lines.append(line)
        self._spent += line.seconds

    def of(self, cell: Cell) -> float:
        """Seconds of one worker for a cell."""
        like = [line for line in self._lines if line.dataset == cell.dataset]
        nearest = [line for line in like if line.method == cell.method] or like or self._lines
        return sum(line.seconds for line in nearest) / max(len(nearest), 1)

    def left(self, cells: Iterable[Cell], *, elapsed: float) -> float:
        """Seconds by the clock, if it goes on as in the `elapsed` ones."""
        share = elapsed / max(self._spent, 1e-9)
        return share * sum(self.of(cell) for cell in cells)


def clock(seconds: float) -> str:
    """Say a time in the unit that fits.

    >>> clock(45), clock(600), clock(10_000)
    ('45 s', '10 min', '2.8 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
