"""The page of `benchmarks.choices`: what another constant would have given, on nodes unseen."""

from collections.abc import Iterator, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Any

from benchmarks.page import machine

from vesper.party.stage_selection import MARGIN

MARGINS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
AS_BUILT = "as built"

Cell = tuple[str, float, int]
CellMetrics = dict[Cell, float]


def page(lines: Sequence[Any], *, rules: Sequence[str], made_with: str) -> str:
    """The whole page."""
    codes = ", ".join(sorted({line.code for line in lines}))
    first = by_rule(lines, AS_BUILT)
    margins = {f"{m:g}": {cell: held_out(x, m) for cell, x in first.items()} for m in MARGINS}
    best = {cell: max(x.held_out) for cell, x in first.items()}
    shares = {
        rule: {cell: held_out(x, MARGIN) for cell, x in by_rule(lines, rule).items()}
        for rule in rules
    }
    return "\n".join(
        [
            "# Constants of the certified plan, judged without test nodes",
            "",
            f"Command: `{made_with}`. Machine: {machine()}. Source {codes}. Public sets without "
            "their test nodes: half of the validation nodes choose as in any run, and the other "
            "half, which no run sees, are what the numbers here are of. Percent, mean over seeds "
            f"{', '.join(str(s) for s in sorted({line.seed for line in lines}))}; the last column "
            "is the mean of all cells against what is built in, ± its standard error over cells.",
            "",
            f"## By how many errors a later stage must be ahead (built in: {MARGIN:g})",
            "",
            *table(margins | {"the best each time": best}, built_in=f"{MARGIN:g}", head="margin"),
            "",
            "## When the trial takes another degree share than the default",
            "",
            "Doubt: deviations of chance by which what gains may explain less, and what loses "
            "more (built in: 2); better: how much more another share has to explain all the same "
            "(built in: 2 %).",
            "",
            *table(shares, built_in=AS_BUILT, head="rule"),
            "",
            "## The same by set",
            "",
            *table(margins, built_in=f"{MARGIN:g}", head="margin", across=0),
            "",
            *table(shares, built_in=AS_BUILT, head="rule", across=0),
            "",
        ]
    )


def held_out(line: Any, margin: float) -> float:
    """Metric of the stage that would be chosen with this margin."""
    later = line.validation[1:]
    best = 1 + later.index(max(later))
    ahead = line.validation[best] - line.validation[0]
    chosen = best if ahead > max(margin * line.error, 0.0) else 0
    value: float = line.held_out[chosen]
    return value


def by_rule(lines: Sequence[Any], rule: str) -> dict[Cell, Any]:
    """The run of each cell whose degree share the rule proposes."""
    proposed = {cell_of(line): line.proposed.get(rule) for line in lines}
    return {cell_of(line): line for line in lines if line.share == proposed[cell_of(line)]}


def cell_of(line: Any) -> Cell:
    """Set, epsilon and seed."""
    return line.dataset, line.epsilon, line.seed


def table(
    ways: dict[str, CellMetrics], *, built_in: str, head: str, across: int = 1
) -> Iterator[str]:
    """Ways down, epsilons (or sets) across."""
    groups = list(dict.fromkeys(cell[across] for cell in ways[built_in]))
    names = [f"{group:g}" if isinstance(group, float) else str(group) for group in groups]
    yield f"| {head} | {' | '.join(names)} | all | against built in |"
    yield "| --- |" + " ---: |" * (len(groups) + 2)
    for way, judged in ways.items():
        cells = [fmean(v for cell, v in judged.items() if cell[across] == g) for g in groups]
        numbers = [f"{number:.2f}" for number in [*cells, fmean(judged.values())]]
        yield f"| {way} | {' | '.join(numbers)} | {difference(judged, ways[built_in])} |"


def difference(ours: CellMetrics, theirs: CellMetrics) -> str:
    """Mean of the differences, and its standard error.

    >>> cells = [("a", 1.0, 0), ("a", 1.0, 1)]
    >>> difference(dict(zip(cells, [80.0, 82.0])), dict(zip(cells, [80.0, 81.0])))
    '+0.50 ± 0.50'
    """
    apart = [ours[cell] - theirs[cell] for cell in ours]
    error = stdev(apart) / sqrt(len(apart)) if len(apart) > 1 else 0.0
    return f"{fmean(apart):+.2f} ± {error:.2f}"
