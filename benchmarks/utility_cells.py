"""Cells of the utility table: one method, data set, epsilon and seed, in the order of their run.

Cells are in the order of seeds, and small data sets come first, so that an early table is already
informative.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from vesper.method.baselines.sampled import SampledMethod
from vesper.method.registry import METHODS
from vesper.method.settings import Config
from vesper.session.config import load_config
from vesper.study.cell import Cell, needs_no_epsilon

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, math.inf)
SEEDS = (0, 1, 2, 3, 4)

WITHOUT_NOISE = {
    "paper-gin": "gin",
    "paper-gcn": "gcn",
    "edgerand": "gcn",
    "lapgraph": "gcn",
}
"""Method that each of these equals bit for bit at epsilon = inf, so that it is not run there."""


def is_control(dataset: str, method: str, epsilon: float) -> bool:
    """Whether a cell is measured only to check that it equals the method in `WITHOUT_NOISE`."""
    return method in WITHOUT_NOISE and math.isinf(epsilon)


LARGE_SETS = ("fb100_multi8", "ieee_cis")
"""Data sets with over 100,000 nodes."""

SAMPLED_ON_LARGE: Mapping[str, Any] = {
    "batch_size": 8192,
    "width": 64,
    "dropout": 0.0,
    "learning_rate": 0.006,
    "epochs": 8,
    "patience": 3,
}
"""Settings on large data sets for methods that sample neighbourhoods.

With the defaults a cell of fb100_multi8 takes an hour, because each batch reads nearly all nodes
(docs/decisions/0006).
"""

CROWDED_UP_TO = 8.0
"""Epsilon up to which EdgeRand's graph of ieee_cis has at least 100 false neighbours per node."""
NEIGHBORS_IN_CROWDS = 10
"""Number of neighbours that a layer samples there, instead of 50 (docs/decisions/0006)."""


def datasets_in(folder: Path) -> dict[str, int]:
    """Data sets in a folder with their numbers of nodes, small ones first."""
    tables = folder.glob("*/nodes.parquet")
    sizes = {path.parent.name: pq.read_metadata(path).num_rows for path in tables}
    return dict(sorted(sizes.items(), key=lambda item: item[1]))


def all_cells(
    datasets: Sequence[str],
    methods: Sequence[str],
    epsilons: Sequence[float] = EPSILONS,
    seeds: Sequence[int] = SEEDS,
) -> list[Cell]:
    """All cells, each once."""
    once = {method for method in methods if needs_no_epsilon(method)}
    return [
        Cell(dataset, method, epsilon, seed)
        for seed in seeds
        for dataset in datasets
        for epsilon in sorted({*epsilons, math.inf} if once else set(epsilons), reverse=True)
        for method in methods
        if (math.isinf(epsilon) if method in once else epsilon in epsilons)
        and not (math.isinf(epsilon) and method in WITHOUT_NOISE)
    ]


def config_of(cell: Cell, overrides: Mapping[str, Any]) -> Config:
    """Defaults of the method with the cell's settings and overrides; delta is the public one."""
    given = {"method": cell.method, "epsilon": cell.epsilon, "seed": cell.seed}
    is_sampled = isinstance(METHODS[cell.method], SampledMethod)
    large = SAMPLED_ON_LARGE if is_sampled and cell.dataset in LARGE_SETS else {}
    crowded = {"max_degree": NEIGHBORS_IN_CROWDS} if is_crowded(cell) else {}
    return load_config(None, {**large, **crowded, **overrides, **given})


def is_crowded(cell: Cell) -> bool:
    """Whether nearly all neighbours are false, on the largest data set."""
    return (
        cell.dataset == "ieee_cis" and cell.method == "edgerand" and cell.epsilon <= CROWDED_UP_TO
    )
