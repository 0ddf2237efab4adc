"""Cells of the utility table: one method, data set, epsilon and seed, in the order of their run.

The first seed of everything comes first, and small sets, so that a table made early already says
something.
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
"""Which method each of these is at epsilon = inf, bit for bit, and hence is not run again there."""


def is_control(dataset: str, method: str, epsilon: float) -> bool:
    """Whether it is measured only to see that it equals the method that stands in its place."""
    return method in WITHOUT_NOISE and math.isinf(epsilon)


LARGE_SETS = ("fb100_multi8", "ieee_cis")
"""Sets of over 100,000 nodes."""

SAMPLED_ON_LARGE: Mapping[str, Any] = {
    "batch_size": 8192,
    "width": 64,
    "dropout": 0.0,
    "learning_rate": 0.006,
    "epochs": 8,
    "patience": 3,
}
"""Settings there of methods that sample neighbourhoods: with the defaults a cell of fb100_multi8
takes an hour, since each batch reads nearly all nodes (docs/decisions/0006)."""

CROWDED_UP_TO = 8.0
"""Epsilon up to which EdgeRand's graph of ieee_cis has 100 false neighbours a node and more."""
NEIGHBORS_IN_CROWDS = 10
"""Of which a layer samples so many there, not 50 (docs/decisions/0006)."""


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
    """Every cell once."""
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
    """Defaults of the method, with what is asked for; delta is the public one."""
    given = {"method": cell.method, "epsilon": cell.epsilon, "seed": cell.seed}
    is_sampled = isinstance(METHODS[cell.method], SampledMethod)
    large = SAMPLED_ON_LARGE if is_sampled and cell.dataset in LARGE_SETS else {}
    crowded = {"max_degree": NEIGHBORS_IN_CROWDS} if is_crowded(cell) else {}
    return load_config(None, {**large, **crowded, **overrides, **given})


def is_crowded(cell: Cell) -> bool:
    """Whether nearly all neighbours are false ones, on the largest set."""
    return (
        cell.dataset == "ieee_cis" and cell.method == "edgerand" and cell.epsilon <= CROWDED_UP_TO
    )
