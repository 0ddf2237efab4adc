"""Tables of a study: one a set, what is published below what we measured."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vesper.study.findings import Findings, notes_of, title_of
from vesper.study.presets import published_histograms

PUBLISHED = "published"
DEGREES = (*range(10), 10, 15, 20, 30, 40)
"""Where rows of a table of degrees begin; the last bin of a histogram has a row of its own."""


@dataclass(frozen=True)
class Table:
    """Words in rows."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def tables_of(findings: Findings) -> list[Table]:
    """One table a set."""
    make = _degrees_of if findings.has_histograms else _scores_of
    return [make(findings, dataset) for dataset in findings.datasets]


def as_markdown(findings: Findings) -> str:
    """All tables and notes as one document."""
    parts = [f"# {findings.study.grid.title}", ""]
    for table in tables_of(findings):
        parts += [f"## {table.title}", "", f"| {' | '.join(table.columns)} |"]
        parts += ["| --- | --- |" + " ---: |" * (len(table.columns) - 2)]
        parts += [f"| {' | '.join(row)} |" for row in table.rows]
        parts += [""]
    return "\n".join([*parts, *(f"* {note}" for note in notes_of(findings)), ""])


def _scores_of(findings: Findings, dataset: str) -> Table:
    """Series down, epsilons across."""
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
    for name, guarantee, scores in (
        (series, findings.guarantee_of(dataset, series), findings.measured),
        (f"  {PUBLISHED}", "", findings.published),
    ):
        found = [scores.get((dataset, series, epsilon)) for epsilon in epsilons]
        if scores is findings.measured or any(found):
            seeds = findings.study.seeds if scores is findings.measured else 0
            yield [name, guarantee, *("" if s is None else s.text(seeds=seeds) for s in found)]


def _degrees_of(findings: Findings, dataset: str) -> Table:
    """Degrees down, shares of nodes across."""
    series = findings.series_of(dataset)
    found = {name: findings.histogram_of(dataset, name) for name in series}
    columns = {f"{name}, {findings.guarantee_of(dataset, name)}": found[name] for name in series}
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
