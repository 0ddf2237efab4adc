"""Cells of a study: what is to be measured, and the line that says what was.

A line is written when a cell is finished, so that a stopped study goes on where it was.

Scores: a metric over seeds, as mean and standard deviation.
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
    """What is to be measured; `series` names its curve, where one method has several."""

    dataset: str
    method: str
    epsilon: float
    seed: int
    series: str = ""

    def __str__(self) -> str:
        """Name it in a sentence."""
        name = self.series or self.method
        return f"{self.dataset}, {name}, epsilon {self.epsilon:g}, seed {self.seed}"


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """What was measured, or why not (`failed`, `limit`); metrics in percent."""

    dataset: str
    method: str
    epsilon: float
    seed: int
    settings: str
    """Digest of all settings."""
    version: str
    code: str
    """Digest of the source that made it."""
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
        """What it is about."""
        return Cell(self.dataset, self.method, self.epsilon, self.seed, self.series)

    @property
    def is_measured(self) -> bool:
        """Whether there is a result."""
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
    """Cells without a line for these settings; what failed, or had less time, is tried again."""
    done = {
        (line.cell, line.settings)
        for line in lines
        if line.failed is None and (line.limit is None or line.limit >= limit)
    }
    return [cell for cell in cells if (cell, settings[cell]) not in done]


def newest(lines: Iterable[CellResult]) -> list[CellResult]:
    """The last line of each cell, in the order of first lines."""
    found: dict[Cell, CellResult] = {}
    for line in lines:
        found[line.cell] = line
    return list(found.values())


@cache
def needs_no_epsilon(method: str) -> bool:
    """Whether a method adds no noise, whatever epsilon is: it is run once a seed, at inf."""
    from vesper.method.base import (
        PublicSizes,
    )  # load torch, which a worker loads with its first cell
    from vesper.method.registry import find_method
    from vesper.session.config import load_config

    config = load_config(None, {"method": method, "epsilon": 4.0})
    sizes = PublicSizes(num_nodes=10_000, num_train=5_000, num_features=10, num_classes=3)
    return find_method(method).noise_plan(config, sizes).plan in {"edge-free", "none"}


def datasets_of(cells: Sequence[Cell]) -> list[str]:
    """Names of data sets, in order, each once."""
    return list(dict.fromkeys(cell.dataset for cell in cells))


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


def scores_of(lines: Iterable[CellResult]) -> dict[Key, Score]:
    """Summarise finished cells."""
    values: dict[Key, list[float]] = defaultdict(list)
    for line in lines:
        if line.test is not None:
            values[line.dataset, line.series or line.method, line.epsilon].append(line.test)
    return {
        key: Score(fmean(found), stdev(found) if len(found) > 1 else math.nan, len(found))
        for key, found in values.items()
    }
