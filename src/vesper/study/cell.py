"""Cells of a study, their results, and scores over seeds.

A result is written as soon as its cell is finished, so that a stopped study can resume. A score is
the mean and standard deviation of a metric over seeds.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, stdev

from vesper.method.settings import Config


@dataclass(frozen=True)
class Cell:
    """One measurement to make; `series` names its curve if a method has several."""

    dataset: str
    method: str
    epsilon: float
    seed: int
    series: str = ""

    def __str__(self) -> str:
        """Describe the cell within a sentence."""
        name = self.series or self.method
        return f"{self.dataset}, {name}, epsilon {self.epsilon:g}, seed {self.seed}"


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """Result of a cell, or why there is none (`failed`, `limit`); metrics in percent."""

    dataset: str
    method: str
    epsilon: float
    seed: int
    settings: str
    """Digest of all settings."""
    version: str
    code: str
    """Digest of the source that produced the result."""
    series: str = ""
    measure: str = "training"
    decoder: str | None = None
    max_degree: int | None = None
    min_degree: int | None = None
    batch_size: int | None = None
    hops: int | None = None
    plan: str | None = None
    metric: str | None = None
    validation: float | None = None
    test: float | None = None
    histogram: tuple[float, ...] | None = None
    seconds: float = 0.0
    chosen_stage: int | None = None
    limit: float | None = None
    failed: str | None = None

    @property
    def cell(self) -> Cell:
        """The cell that was measured."""
        return Cell(self.dataset, self.method, self.epsilon, self.seed, self.series)

    @property
    def is_measured(self) -> bool:
        """Whether a metric or a histogram was measured."""
        return self.test is not None or self.histogram is not None


def settings_digest(config: Config) -> str:
    """Digest of all settings."""
    return config.contract[:16]


def unfinished(
    cells: Iterable[Cell],
    lines: Iterable[CellResult],
    *,
    settings: Mapping[Cell, str],
    limit: float,
) -> list[Cell]:
    """Cells without a result for their settings.

    Cells that failed, or were stopped at a lower limit, count as unfinished.
    """
    done = {
        (line.cell, line.settings)
        for line in lines
        if line.failed is None and (line.limit is None or line.limit >= limit)
    }
    return [cell for cell in cells if (cell, settings[cell]) not in done]


def newest(lines: Iterable[CellResult]) -> list[CellResult]:
    """The last result of each cell, in the order of first results."""
    last: dict[Cell, CellResult] = {}
    for line in lines:
        last[line.cell] = line
    return list(last.values())


@cache
def needs_no_epsilon(method: str) -> bool:
    """Whether a method adds no noise at any epsilon: it is run once per seed, at inf."""
    # These load torch, which a worker loads with its first cell.
    from vesper.method.base import PublicSizes
    from vesper.method.registry import find_method
    from vesper.session.config import load_config

    config = load_config(None, {"method": method, "epsilon": 4.0})
    sizes = PublicSizes(num_nodes=10_000, num_train=5_000, num_features=10, num_classes=3)
    return find_method(method).noise_plan(config, sizes).plan in {"edge-free", "none"}


def datasets_of(cells: Sequence[Cell]) -> list[str]:
    """Names of the data sets of cells, in order, each once."""
    return list(dict.fromkeys(cell.dataset for cell in cells))


Key = tuple[str, str, float]
"""Data set, series (method if there is none) and epsilon."""


@dataclass(frozen=True)
class Score:
    """A metric over seeds, in percent."""

    mean: float
    deviation: float
    """Standard deviation; NaN if unknown, such as for a single seed."""
    seeds: int
    configuration: str = ""
    """Configuration that reached it, if it is the best of several or known for a published one."""
    note: str = ""
    """What is wrong with a published score."""

    def text(self, *, seeds: int) -> str:
        """Format mean and deviation, with the number of seeds if it is below `seeds`.

        >>> Score(80.04, 0.96, 3).text(seeds=3), Score(80.0, math.nan, 1).text(seeds=3)
        ('80.0 ± 1.0', '80.0 (1)')
        """
        few = f" ({self.seeds})" if self.seeds < seeds else ""
        spread = "" if math.isnan(self.deviation) else f" ± {self.deviation:.1f}"
        return f"{self.mean:.1f}{spread}{few}"


def scores_of(lines: Iterable[CellResult]) -> dict[Key, Score]:
    """Summarise finished cells over seeds."""
    values: dict[Key, list[float]] = defaultdict(list)
    for line in lines:
        if line.test is not None:
            values[line.dataset, line.series or line.method, line.epsilon].append(line.test)
    return {
        key: Score(fmean(tests), stdev(tests) if len(tests) > 1 else math.nan, len(tests))
        for key, tests in values.items()
    }
