"""What a study found so far, beside what is published: the input of tables and figures."""

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
"""What the plan of a line is worth, in a word or three."""


@dataclass(frozen=True)
class Findings:
    """One study with its lines."""

    study: Study
    lines: tuple[CellResult, ...]
    keys: tuple[Key, ...]
    """Set, series and epsilon of all that the grid asks for, in its order."""
    measured: Mapping[Key, Score]
    published: Mapping[Key, Score]

    @property
    def datasets(self) -> tuple[str, ...]:
        """Sets, in order."""
        return self.study.grid.datasets

    def series_of(self, dataset: str) -> list[str]:
        """Names of curves of a set, in order."""
        return list(dict.fromkeys(series for name, series, _ in self.keys if name == dataset))

    def epsilons_of(self, dataset: str) -> list[float]:
        """Epsilons of a set, the largest last."""
        return sorted({epsilon for name, _, epsilon in self.keys if name == dataset})

    def guarantee_of(self, dataset: str, series: str) -> str:
        """What protects edges in a series, where it adds noise."""
        plans = {
            math.isfinite(line.epsilon): line.plan
            for line in self.lines
            if (line.dataset, line.series) == (dataset, series) and line.plan
        }
        return GUARANTEES.get(plans.get(True) or plans.get(False) or "", "-")

    def histogram_of(self, dataset: str, series: str) -> tuple[float, ...] | None:
        """Mean over seeds of counts by degree."""
        found = [
            line.histogram
            for line in self.lines
            if (line.dataset, line.series) == (dataset, series) and line.histogram
        ]
        if not found:
            return None
        return tuple(sum(counts) / len(found) for counts in zip(*found, strict=True))

    @property
    def has_histograms(self) -> bool:
        """Whether cells are histograms instead of scores."""
        return any(block.measure.startswith("degrees") for block in self.study.grid.grid)

    def metric_of(self, dataset: str) -> str:
        """What is measured."""
        found = [line.metric for line in self.lines if line.dataset == dataset and line.metric]
        return found[0] if found else "-"

    def without_result(self) -> list[CellResult]:
        """Lines without a result."""
        return [line for line in self.lines if not line.is_measured]

    def as_json(self) -> dict[str, Any]:
        """Everything, for programs."""
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
        InputError: it is none.
    """
    study = read_study(folder)
    keys = tuple(dict.fromkeys(names_of(study.grid, small=study.small)))
    asked = {(dataset, series, epsilon) for dataset, series, epsilon in keys}
    lines = [
        line
        for line in read_results(folder)
        if (line.dataset, line.series, line.epsilon) in asked and line.seed < study.seeds
    ]
    return Findings(study, tuple(lines), keys, scores_of(lines), published_scores(study.name))


def title_of(findings: Findings, dataset: str) -> str:
    """A set with what stands in for it."""
    known = KNOWN.get(dataset)
    name = known.title if known else dataset
    source = findings.study.sources.get(dataset, "")
    return f"{name} ({'data of the user' if source.startswith('folder') else source})"


def notes_of(findings: Findings) -> Iterator[str]:
    """What a reader has to know."""
    study = findings.study
    if not findings.has_histograms:
        yield (
            f"Test metric in percent: mean ± standard deviation over {study.seeds} seeds (how "
            f"many, where there are fewer)."
        )
    if findings.published or findings.has_histograms:
        yield (
            "'published' is what the paper prints, on the real sets at full size; ours is on what "
            "stands in brackets."
        )
    yield (
        "'claimed' epsilon is by the paper's analysis and does not hold; 'certified' epsilon holds "
        "against a label party that knows every batch."
    )
    for line in findings.without_result():
        why = line.failed or f"stopped after {line.limit:g} s"
        yield f"Missing: {line.cell}: {why}."
