"""Cells of the utility table: one method, data set, epsilon and seed; kept as lines of JSON.

A line is written when a cell is finished, so that a stopped run goes on where it was. Order: the
first seed of everything, small sets first, so that a table made early already says something.
"""

import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from vesper.method.method import Sizes
from vesper.method.registry import METHODS
from vesper.run.config import load_config

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, math.inf)
SEEDS = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class Cell:
    """What is to be measured."""

    dataset: str
    method: str
    epsilon: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class Line:
    """What was measured, or why not (`failed`, `limit`); metrics in percent."""

    dataset: str
    method: str
    epsilon: float
    seed: int
    settings: str
    version: str
    code: str
    plan: str | None = None
    metric: str | None = None
    validation: float | None = None
    test: float | None = None
    seconds: float = 0.0
    chosen_stage: int | None = None
    limit: float | None = None
    failed: str | None = None

    @property
    def cell(self) -> Cell:
        return Cell(self.dataset, self.method, self.epsilon, self.seed)


def needs_no_epsilon(method: str) -> bool:
    """Whether a method adds no noise, whatever epsilon is: it is run once a seed, at inf."""
    config = load_config(None, {"method": method, "epsilon": 4.0})
    sizes = Sizes(num_nodes=10_000, num_train=5_000, num_features=10, num_classes=3)
    return METHODS[method].promise(config, sizes).plan in {"edge-free", "none"}


def datasets_in(folder: Path) -> dict[str, int]:
    """Data sets with their number of nodes, small ones first."""
    tables = folder.glob("*/nodes.parquet")
    sizes = {path.parent.name: pq.read_metadata(path).num_rows for path in tables}
    return dict(sorted(sizes.items(), key=lambda item: item[1]))


def all_cells(
    datasets: Sequence[str],
    methods: Sequence[str],
    epsilons: Sequence[float] = EPSILONS,
    seeds: Sequence[int] = SEEDS,
) -> list[Cell]:
    """Every cell once, in the order in which they are to be run."""
    once = {method for method in methods if needs_no_epsilon(method)}
    return [
        Cell(dataset, method, epsilon, seed)
        for seed in seeds
        for dataset in datasets
        for epsilon in sorted({*epsilons, math.inf} if once else set(epsilons), reverse=True)
        for method in methods
        if (math.isinf(epsilon) if method in once else epsilon in epsilons)
    ]


def unfinished(
    cells: Iterable[Cell], lines: Iterable[Line], *, settings: dict[Cell, str], limit: float
) -> list[Cell]:
    """Cells without a line for these settings; what failed, or had less time, is tried again."""
    done = {
        (line.cell, line.settings)
        for line in lines
        if line.failed is None and (line.limit is None or line.limit >= limit)
    }
    return [cell for cell in cells if (cell, settings[cell]) not in done]


def read_lines(path: Path) -> list[Line]:
    """Read what is finished; the newest line of a cell counts. A torn last line is left out."""
    if not path.exists():
        return []
    newest: dict[Cell, Line] = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            facts: dict[str, Any] = json.loads(text)
        except json.JSONDecodeError:
            continue
        line = Line(**facts | {"epsilon": float(facts["epsilon"])})
        newest[line.cell] = line
    return list(newest.values())


def append_line(path: Path, line: Line) -> None:
    """Write one line, on disk before this returns."""
    facts = asdict(line)
    facts["epsilon"] = "inf" if math.isinf(line.epsilon) else line.epsilon
    with path.open("ab+") as file:
        if file.seek(0, os.SEEK_END) and _last_byte(path) != b"\n":
            file.write(b"\n")  # after a torn line
        file.write(json.dumps(facts).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _last_byte(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read()
