"""Count what is wrong in a stream, and refuse it once at the end."""

from collections.abc import Iterable
from itertools import islice

from vesper.errors import InputError, first_three


class Offenders:
    """What breaks one rule of one column, while the rows pass by.

    >>> odd = Offenders("edges.csv, column 2", "node numbers below 3", "drop these rows")
    >>> odd.add([7, 9], count=2)
    >>> odd.refuse()
    Traceback (most recent call last):
    vesper.errors.InputError: edges.csv, column 2: expected node numbers below 3, found 2 others \
(first 2: 7, 9); drop these rows
    """

    def __init__(self, place: str, expected: str, fix: str) -> None:
        self._place = place
        self._expected = expected
        self._fix = fix
        self._count = 0
        self._named: list[object] = []

    def add(self, offenders: Iterable[object], *, count: int) -> None:
        """Remember `count` offenders; only the first three of the stream are kept by name."""
        self._count += count
        self._named.extend(islice(offenders, 3 - len(self._named)))

    def refuse(self) -> None:
        """Raise when there was any offender.

        Raises:
            InputError: With the place, the count and the first three.
        """
        if self._count:
            raise InputError(
                f"{self._place}: expected {self._expected}, found {self._count} others "
                f"({first_three(self._named)}); {self._fix}"
            )
