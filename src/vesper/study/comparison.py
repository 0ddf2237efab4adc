"""The numbers that the paper publishes, for the studies that repeat it (`published/README.md`)."""

import csv
import math
from collections.abc import Iterator
from importlib.resources import files

from vesper.study.score import Key, Score

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
