"""Results of a study so far, next to published numbers: the input of tables and figures."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vesper.study.best_of import best_scores, keys_with_best
from vesper.study.cell import CellResult, Key, Score, scores_of
from vesper.study.folder import Study, read_study
from vesper.study.parameter_grid import configurations_of, names_of
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
    """Data set, series and epsilon of every cell of the grid, in its order; those of a best curve
    come before those of its configurations."""
    measured: Mapping[Key, Score]
    published: Mapping[Key, Score]
    configurations: Mapping[Key, list[str]]
    """Series of which the best is reported, by the key of that best score."""

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of the data sets, in order."""
        return self.study.grid.datasets

    def series_of(self, dataset: str) -> list[str]:
        """Names of the curves of a data set, in order."""
        return list(dict.fromkeys(series for name, series, _ in self.keys if name == dataset))

    def is_configuration(self, dataset: str, series: str) -> bool:
        """Whether a series is one of the configurations of a best curve."""
        return any(
            key[0] == dataset and series in members for key, members in self.configurations.items()
        )

    def epsilons_of(self, dataset: str) -> list[float]:
        """Epsilons of a data set, in ascending order."""
        return sorted({epsilon for name, _, epsilon in self.keys if name == dataset})

    def guarantee_of(self, dataset: str, series: str) -> str:
        """Guarantee of a series for edges, from cells with noise if there are any."""
        members = {series}.union(
            *(names for key, names in self.configurations.items() if key[:2] == (dataset, series))
        )
        plans = {
            math.isfinite(line.epsilon): line.plan
            for line in self.lines
            if line.dataset == dataset and line.series in members and line.plan
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


def _facts(prefix: str, score: Score | None) -> dict[str, float | int | str]:
    if score is None:
        return {}
    return {
        f"{prefix}mean": score.mean,
        f"{prefix}std": score.deviation,
        f"{prefix}seeds": score.seeds,
        **({f"{prefix}configuration": score.configuration} if score.configuration else {}),
        **({f"{prefix}note": score.note} if score.note else {}),
    }


def _counts(name: str, counts: tuple[float, ...] | None) -> dict[str, list[float]]:
    return {} if counts is None else {name: list(counts)}


def findings_in(folder: Path) -> Findings:
    """Read a study folder.

    Raises:
        InputError: the folder holds no study.
    """
    study = read_study(folder)
    wanted = dict.fromkeys(names_of(study.grid, small=study.small))
    configurations = configurations_of(study.grid, small=study.small)
    lines = [
        line
        for line in read_results(folder)
        if (line.dataset, line.series, line.epsilon) in wanted and line.seed < study.seeds
    ]
    scores = scores_of(lines)
    return Findings(
        study,
        tuple(lines),
        keys_with_best(tuple(wanted), configurations),
        {**scores, **best_scores(scores, configurations)},
        published_scores(study.name),
        configurations,
    )


def title_of(findings: Findings, dataset: str) -> str:
    """Title of a data set, with its source."""
    known = KNOWN.get(dataset)
    name = known.title if known else dataset
    source = findings.study.sources.get(dataset, "")
    return f"{name} ({'data of the user' if source.startswith('folder') else source})"
