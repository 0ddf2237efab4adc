"""Tables of a study: one per data set, with published numbers below the measured ones."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vesper.study.findings import Findings, title_of
from vesper.study.notes import notes_of
from vesper.study.presets import published_histograms

PUBLISHED = "published"
DEGREES = (*range(10), 10, 15, 20, 30, 40)
"""First degree of each row of a degree table; the last bin of a histogram has its own row."""


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def tables_of(findings: Findings) -> list[Table]:
    """Return one table per data set."""
    make = _degrees_of if findings.has_histograms else _scores_of
    return [make(findings, dataset) for dataset in findings.datasets]


def as_markdown(findings: Findings) -> str:
    """Format all tables and notes as one Markdown document."""
    parts = [f"# {findings.study.grid.title}", ""]
    for table in tables_of(findings):
        parts += [f"## {table.title}", "", f"| {' | '.join(table.columns)} |"]
        parts += ["| --- | --- |" + " ---: |" * (len(table.columns) - 2)]
        parts += [f"| {' | '.join(row)} |" for row in table.rows]
        parts += [""]
    return "\n".join([*parts, *(f"* {note}" for note in notes_of(findings)), ""])


def _scores_of(findings: Findings, dataset: str) -> Table:
    """Table of scores: one row per series, one column per epsilon."""
    epsilons = findings.epsilons_of(dataset)
    heads = ["inf" if math.isinf(epsilon) else f"{epsilon:g}" for epsilon in epsilons]
    rows = [
        row
        for series in findings.series_of(dataset)
        for row in _rows_of(findings, dataset, series, epsilons)
    ]
    title = f"{title_of(findings, dataset)}: {findings.metric_of(dataset)}"
    return Table(title, ["epsilon", "guarantee", *heads], rows)


def _rows_of(
    findings: Findings, dataset: str, series: str, epsilons: Sequence[float]
) -> Iterator[list[str]]:
    is_best = any(key[:2] == (dataset, series) for key in findings.configurations)
    title = f"{series}, best of" if is_best else series
    for name, guarantee, scores in (
        (title, findings.guarantee_of(dataset, series), findings.measured),
        (f"  {PUBLISHED}", "", findings.published),
    ):
        row_scores = [scores.get((dataset, series, epsilon)) for epsilon in epsilons]
        if scores is findings.measured or any(row_scores):
            seeds = findings.study.seeds if scores is findings.measured else 0
            yield [name, guarantee, *("" if s is None else s.text(seeds=seeds) for s in row_scores)]
            configurations = ["" if s is None else s.configuration for s in row_scores]
            if any(configurations):
                yield ["  with", "", *configurations]


def _degrees_of(findings: Findings, dataset: str) -> Table:
    """Table of shares of nodes: one row per group of degrees, one column per series."""
    series = findings.series_of(dataset)
    histograms = {name: findings.histogram_of(dataset, name) for name in series}
    columns = {
        f"{name}, {findings.guarantee_of(dataset, name)}": histograms[name] for name in series
    }
    columns[PUBLISHED] = published_histograms().get(dataset)
    last = 50
    stops = [*DEGREES[1:], last, last + 1]
    rows = []
    for start, stop in zip((*DEGREES, last), stops, strict=True):
        name = str(start) if stop == start + 1 else f"{start} to {stop - 1}"
        name = f"{last} and more" if start == last else name
        rows.append([name, *(_share(counts, start, stop) for counts in columns.values())])
    return Table(
        f"{title_of(findings, dataset)}: share of nodes by degree", ["degree", *columns], rows
    )


def _share(counts: Sequence[float] | None, start: int, stop: int) -> str:
    return "" if counts is None else f"{100 * sum(counts[start:stop]) / sum(counts):.2f} %"
