"""The numbers that the paper publishes, for the studies that repeat it (`published/README.md`).

Studies that come with the package: everything that the paper shows.
"""

import csv
import math
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path

from vesper.errors import InputError
from vesper.session.config import suggest_key
from vesper.study.cell import Key, Score
from vesper.study.parameter_grid import Grid, read_grid

HISTOGRAMS = "degree-histograms"
TRIALS = 10
"""Of which means and standard deviations are published."""


def published_scores(study: str) -> dict[Key, Score]:
    """Scores by set, series and epsilon; none for a study that the paper does not have."""
    if study == HISTOGRAMS:
        return {}
    return {
        (row["dataset"], row["series"], float(row["epsilon"])): Score(
            float(row["mean"]), float(row["std"] or math.nan), TRIALS
        )
        for row in _rows(study)
    }


def published_histograms() -> dict[str, tuple[float, ...]]:
    """Counts of nodes by degree, the last of all from 50 on, by set."""
    counts: dict[str, list[float]] = {}
    for row in _rows(HISTOGRAMS):
        counts.setdefault(row["dataset"], []).append(10 ** float(row["log10_count"]))
    return {dataset: tuple(found) for dataset, found in counts.items()}


def _rows(study: str) -> Iterator[dict[str, str]]:
    path = files("vesper.study") / "published" / f"{study}.csv"
    if path.is_file():
        yield from csv.DictReader(path.read_text(encoding="utf-8").splitlines())


NAMES = (
    "table-1",
    "table-full",
    "trade-off",
    "max-degree",
    "min-degree",
    "batch-size",
    "degree-histograms",
    "membership",
)


def find_grid(name: str) -> tuple[str, Grid]:
    """Give the name and the grid of a preset, or of a TOML file.

    Raises:
        InputError: there is neither.
    """
    if name in NAMES:
        with as_file(files("vesper.study") / "presets" / f"{name}.toml") as path:
            return name, read_grid(path)
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return path.stem, read_grid(path)
    raise InputError(
        f"unknown study '{name}'{suggest_key(name, NAMES)}; 'vesper study list' shows all, and a TOML "
        f"file with a grid of your own will do"
    )
