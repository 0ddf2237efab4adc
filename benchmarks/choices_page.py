"""The page of `benchmarks.choices`: results of other constants on nodes that no run saw."""

from collections.abc import Iterator, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Any

from benchmarks.page import machine

from vesper.method.certified.message_content import LEAD_ERRORS, MODEL_ERROR
from vesper.party.stage_selection import MARGIN

MARGINS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
AS_BUILT = "as built"

Cell = tuple[str, float, int]
CellMetrics = dict[Cell, float]


def page(lines: Sequence[Any], *, rules: Sequence[str], made_with: str) -> str:
    """Return the whole page."""
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
            "# Constants of the certified plan, evaluated without test nodes",
            "",
            f"Command: `{made_with}`. Machine: {machine()}. Source {codes}. Public data sets "
            "without their test nodes: half of the validation nodes choose as in any run, and the "
            "numbers here are for the other half, which no run sees. Percent, mean over seeds "
            f"{', '.join(str(s) for s in sorted({line.seed for line in lines}))}; the last column "
            "is the mean over all cells of the difference to the built-in constant, ± its standard "
            "error over cells.",
            "",
            f"## Lead that a later stage needs, in standard errors (built in: {MARGIN:g})",
            "",
            *table(margins | {"the best each time": best}, built_in=f"{MARGIN:g}", head="margin"),
            "",
            "## When the probe chooses other message content than the default",
            "",
            "Content is classes, a feature projection or received sums, with a degree share. "
            f"Errors: standard errors by which it has to lead (built in: {LEAD_ERRORS:g}). "
            "Model error: error of what the default explains, as a share of it (built in: "
            f"{100 * MODEL_ERROR:g} %).",
            "",
            *table(shares, built_in=AS_BUILT, head="rule"),
            "",
            "## The same by data set",
            "",
            *table(margins, built_in=f"{MARGIN:g}", head="margin", across=0),
            "",
            *table(shares, built_in=AS_BUILT, head="rule", across=0),
            "",
        ]
    )


def held_out(line: Any, margin: float) -> float:
    """Metric of the stage that this margin would choose."""
    later = line.validation[1:]
    best = 1 + later.index(max(later))
    ahead = line.validation[best] - line.validation[0]
    chosen = best if ahead > max(margin * line.error, 0.0) else 0
    value: float = line.held_out[chosen]
    return value


def by_rule(lines: Sequence[Any], rule: str) -> dict[Cell, Any]:
    """Select the run of each cell that has the content that the rule proposes."""
    proposed = {cell_of(line): line.proposed.get(rule) for line in lines}
    return {cell_of(line): line for line in lines if line.content == proposed[cell_of(line)]}


def cell_of(line: Any) -> Cell:
    """Data set, epsilon and seed of a line."""
    return line.dataset, line.epsilon, line.seed


def table(
    variants: dict[str, CellMetrics], *, built_in: str, head: str, across: int = 1
) -> Iterator[str]:
    """One row per variant, one column per epsilon (or data set)."""
    groups = list(dict.fromkeys(cell[across] for cell in variants[built_in]))
    names = [f"{group:g}" if isinstance(group, float) else str(group) for group in groups]
    yield f"| {head} | {' | '.join(names)} | all | against built in |"
    yield "| --- |" + " ---: |" * (len(groups) + 2)
    for name, metrics in variants.items():
        cells = [fmean(v for cell, v in metrics.items() if cell[across] == g) for g in groups]
        numbers = [f"{number:.2f}" for number in [*cells, fmean(metrics.values())]]
        yield f"| {name} | {' | '.join(numbers)} | {difference(metrics, variants[built_in])} |"


def difference(ours: CellMetrics, theirs: CellMetrics) -> str:
    """Mean of the differences per cell, and its standard error.

    >>> cells = [("a", 1.0, 0), ("a", 1.0, 1)]
    >>> difference(dict(zip(cells, [80.0, 82.0])), dict(zip(cells, [80.0, 81.0])))
    '+0.50 ± 0.50'
    """
    differences = [ours[cell] - theirs[cell] for cell in ours]
    error = stdev(differences) / sqrt(len(differences)) if len(differences) > 1 else 0.0
    return f"{fmean(differences):+.2f} ± {error:.2f}"
