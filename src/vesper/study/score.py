"""Scores: a metric over seeds, as mean and standard deviation."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev

from vesper.study.cell import Line

Key = tuple[str, str, float]
"""Set, series (or method, where it has none) and epsilon."""


@dataclass(frozen=True)
class Score:
    """A metric over seeds, in percent."""

    mean: float
    deviation: float
    """NaN where it is not known, such as of one seed."""
    seeds: int

    def text(self, *, seeds: int) -> str:
        """Mean and deviation, and of how many seeds if fewer than `seeds`.

        >>> Score(80.04, 0.96, 3).text(seeds=3), Score(80.0, math.nan, 1).text(seeds=3)
        ('80.0 ± 1.0', '80.0 (1)')
        """
        few = f" ({self.seeds})" if self.seeds < seeds else ""
        spread = "" if math.isnan(self.deviation) else f" ± {self.deviation:.1f}"
        return f"{self.mean:.1f}{spread}{few}"


def scores_of(lines: Iterable[Line]) -> dict[Key, Score]:
    """Summarise finished cells."""
    values: dict[Key, list[float]] = defaultdict(list)
    for line in lines:
        if line.test is not None:
            values[line.dataset, line.series or line.method, line.epsilon].append(line.test)
    return {
        key: Score(fmean(found), stdev(found) if len(found) > 1 else math.nan, len(found))
        for key, found in values.items()
    }
