"""Page of `vesper compare`: runs side by side, and an epsilon-utility curve."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from vesper.report.comparison import Comparison
from vesper.report.contents import metric_label
from vesper.report.downloads import downloads
from vesper.report.html import UNKNOWN, lines_table
from vesper.report.page import document
from vesper.report.sections import bullets, format_value
from vesper.report.tradeoff_chart import tradeoff_section
from vesper.version import VERSION

LABELS = {
    "data": "data",
    "date": "started",
    "method": "method",
    "metric": "metric",
    "validation": "validation, %",
    "test": "test, %",
    "guarantee": "guarantee",
    "epsilon": "epsilon",
    "delta": "delta",
    "unit": "unit of privacy",
    "best_guess": "best guess about an edge, right in at most %",
    "first_noise_std": "noise, first release",
    "releases": "releases",
    "spent_epsilon": "epsilon spent by the run",
    "seconds": "seconds",
}
"""What each fact is called."""


def cell_of(fact: str, value: Any) -> str:
    """Format the value of a fact for a table.

    >>> cell_of("test", 81.25), cell_of("best_guess", 0.66), cell_of("delta", None)
    ('81.2', '66.0', '-')
    """
    if value is None:
        return UNKNOWN
    if fact == "metric":
        return metric_label(str(value))
    if fact == "best_guess":
        return f"{100 * value:.1f}"
    if fact in ("validation", "test", "seconds"):
        return f"{value:.1f}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def comparison_rows(comparison: Comparison) -> list[list[str]]:
    """List the known facts, each with its value for each run."""
    facts = [run.facts for run in comparison.runs]
    rows = ([label, *(cell_of(key, each[key]) for each in facts)] for key, label in LABELS.items())
    return [row for row in rows if any(cell != UNKNOWN for cell in row[1:])]


def setting_rows(comparison: Comparison) -> list[list[str]]:
    """List the settings that differ, each with its value for each run."""
    return [
        [key, *map(format_value, values)] for key, values in comparison.differing_settings.items()
    ]


def charge_rows(comparison: Comparison) -> list[list[str]]:
    """List the charges in order, each with what every run was charged at that place."""
    charges = [run.charges for run in comparison.runs]
    return [
        [f"charge {k + 1}", *(each[k] if k < len(each) else UNKNOWN for each in charges)]
        for k in range(max(map(len, charges)))
    ]


def render_comparison(comparison: Comparison) -> str:
    """Render the whole page."""
    names = comparison.names
    facts, settings = comparison_rows(comparison), setting_rows(comparison)
    charges = charge_rows(comparison)
    verdicts = bullets(
        [f"<b>{escape(run.name)}</b>: {escape(run.privacy.verdict)}" for run in comparison.runs]
    )
    points = [run.tradeoff for run in comparison.runs]
    same = "<p>All settings are the same.</p>"
    unknown = "<p>No charges are known to these sides.</p>"
    main = f"""<header>
<h1>Comparison</h1>
<p>{", ".join(f"<b>{escape(name)}</b>" for name in names)}</p>
{downloads("comparison", comparison.as_json(), [["", *names], *facts, *settings, *charges])}
</header>
<section><h2>Results</h2>{_table(names, facts)}</section>
<section><h2>Guarantees</h2>{verdicts}</section>
{tradeoff_section([point for point in points if point is not None])}
<section><h2>Settings that differ</h2>{_table(names, settings) if settings else same}</section>
<section><h2>Charges</h2>{_table(names, charges) if charges else unknown}</section>
<footer>Written by vesper {VERSION}.</footer>"""
    return document(f"Comparison of {', '.join(names)}", main)


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells: Mapping[str, Sequence[str]] = dict(
        zip(["", *names], zip(*rows, strict=True), strict=True)
    )
    return f'<div class="side-by-side">{lines_table(cells)}</div>'
