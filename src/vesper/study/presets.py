"""Studies of the paper, and the numbers that it publishes for them (`published/README.md`)."""

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
"""Number of trials behind published means and standard deviations."""


def published_scores(study: str) -> dict[Key, Score]:
    """Published scores by data set, series and epsilon; empty for a study that the paper lacks."""
    if study == HISTOGRAMS:
        return {}
    return {
        (row["dataset"], row["series"], float(row["epsilon"])): Score(
            mean=float(row["mean"]),
            deviation=float(row["std"] or math.nan),
            seeds=TRIALS,
            configuration=row.get("configuration", ""),
            note=row.get("note", ""),
        )
        for row in _rows(study)
    }


def published_histograms() -> dict[str, tuple[float, ...]]:
    """Published counts of nodes by degree, per data set; the last is for degrees from 50."""
    counts: dict[str, list[float]] = {}
    for row in _rows(HISTOGRAMS):
        counts.setdefault(row["dataset"], []).append(10 ** float(row["log10_count"]))
    return {dataset: tuple(values) for dataset, values in counts.items()}


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
    "layers",
    "readings",
    "degree-histograms",
    "membership",
)


def find_grid(name: str) -> tuple[str, Grid]:
    """Return name and grid of a preset or of a TOML file.

    Raises:
        InputError: there is no such preset or file.
    """
    if name in NAMES:
        with as_file(files("vesper.study") / "presets" / f"{name}.toml") as path:
            return name, read_grid(path)
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return path.stem, read_grid(path)
    raise InputError(
        f"unknown study '{name}'{suggest_key(name, NAMES)}; use a name from 'vesper study list', "
        f"or a TOML file with your own grid"
    )
