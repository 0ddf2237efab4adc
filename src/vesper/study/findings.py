"""Results of a study so far, next to published numbers: the input of tables and figures."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vesper.study.cell import CellResult, Key, Score, scores_of
from vesper.study.folder import Study, read_study
from vesper.study.parameter_grid import names_of
from vesper.study.presets import published_histograms, published_scores
from vesper.study.sets import KNOWN
from vesper.study.study_results import read_results

GUARANTEES = {
    "certified": "certified",
    "paper": "claimed",
    "edge-free": "reads no edge",
    "none": "not private",
}
"""Guarantee of each plan, in a few words."""


@dataclass(frozen=True)
class Findings:
    """A study with its results and the published scores."""

    study: Study
    lines: tuple[CellResult, ...]
    keys: tuple[Key, ...]
    """Data set, series and epsilon of every cell of the grid, in its order."""
    measured: Mapping[Key, Score]
    published: Mapping[Key, Score]

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of the data sets, in order."""
        return self.study.grid.datasets

    def series_of(self, dataset: str) -> list[str]:
        """Names of the curves of a data set, in order."""
        return list(dict.fromkeys(series for name, series, _ in self.keys if name == dataset))

    def epsilons_of(self, dataset: str) -> list[float]:
        """Epsilons of a data set, in ascending order."""
        return sorted({epsilon for name, _, epsilon in self.keys if name == dataset})

    def guarantee_of(self, dataset: str, series: str) -> str:
        """Guarantee of a series for edges, from cells with noise if there are any."""
        plans = {
            math.isfinite(line.epsilon): line.plan
            for line in self.lines
            if (line.dataset, line.series) == (dataset, series) and line.plan
        }
        return GUARANTEES.get(plans.get(True) or plans.get(False) or "", "-")

    def histogram_of(self, dataset: str, series: str) -> tuple[float, ...] | None:
        """Counts of nodes by degree, averaged over seeds."""
        histograms = [
            line.histogram
            for line in self.lines
            if (line.dataset, line.series) == (dataset, series) and line.histogram
        ]
        if not histograms:
            return None
        return tuple(sum(counts) / len(histograms) for counts in zip(*histograms, strict=True))

    @property
    def has_histograms(self) -> bool:
        """Whether cells have histograms instead of scores."""
        return any(block.measure.startswith("degrees") for block in self.study.grid.grid)

    def metric_of(self, dataset: str) -> str:
        """Name of the metric of a data set."""
        metrics = [line.metric for line in self.lines if line.dataset == dataset and line.metric]
        return metrics[0] if metrics else "-"

    def without_result(self) -> list[CellResult]:
        """Cells that failed or were stopped."""
        return [line for line in self.lines if not line.is_measured]

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        facts = self.study.as_json()
        published = published_histograms() if self.has_histograms else {}
        del facts["grid"]
        return {
            **facts,
            "cells": [
                {
                    "dataset": dataset,
                    "series": series,
                    "epsilon": epsilon,
                    "guarantee": self.guarantee_of(dataset, series),
                    "metric": self.metric_of(dataset),
                    **_facts("", self.measured.get((dataset, series, epsilon))),
                    **_facts("published_", self.published.get((dataset, series, epsilon))),
                    **_counts("histogram", self.histogram_of(dataset, series)),
                    **_counts("published_histogram", published.get(dataset)),
                }
                for dataset, series, epsilon in self.keys
            ],
            "failed": [
                {"cell": str(line.cell), "why": line.failed} for line in self.without_result()
            ],
        }


def _facts(prefix: str, score: Score | None) -> dict[str, float | int]:
    if score is None:
        return {}
    return {
        f"{prefix}mean": score.mean,
        f"{prefix}std": score.deviation,
        f"{prefix}seeds": score.seeds,
    }


def _counts(name: str, counts: tuple[float, ...] | None) -> dict[str, list[float]]:
    return {} if counts is None else {name: list(counts)}


def findings_in(folder: Path) -> Findings:
    """Read a study folder.

    Raises:
        InputError: the folder holds no study.
    """
    study = read_study(folder)
    keys = tuple(dict.fromkeys(names_of(study.grid, small=study.small)))
    wanted = {(dataset, series, epsilon) for dataset, series, epsilon in keys}
    lines = [
        line
        for line in read_results(folder)
        if (line.dataset, line.series, line.epsilon) in wanted and line.seed < study.seeds
    ]
    return Findings(study, tuple(lines), keys, scores_of(lines), published_scores(study.name))


def title_of(findings: Findings, dataset: str) -> str:
    """Title of a data set, with its source."""
    known = KNOWN.get(dataset)
    name = known.title if known else dataset
    source = findings.study.sources.get(dataset, "")
    return f"{name} ({'data of the user' if source.startswith('folder') else source})"


def notes_of(findings: Findings) -> Iterator[str]:
    """Yield notes for the reader of a table."""
    study = findings.study
    if not findings.has_histograms:
        yield (
            f"Test metric in percent: mean ± standard deviation over {study.seeds} seeds (with the "
            f"number of seeds, where there are fewer)."
        )
    if findings.published or findings.has_histograms:
        yield (
            "'published' numbers are from the paper, on the real data sets at full size; ours are "
            "on the data in brackets."
        )
    yield (
        "'claimed' epsilon follows the paper's analysis and does not hold; 'certified' epsilon "
        "holds against a label party that knows every batch."
    )
    for line in findings.without_result():
        why = line.failed or f"stopped after {line.limit:g} s"
        yield f"Missing: {line.cell}: {why}."
