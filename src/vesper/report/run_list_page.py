"""Page of `vesper runs`: a table of runs, and the epsilon-utility curve if there are several."""

from collections.abc import Sequence
from html import escape

from vesper.report.downloads import Row, downloads
from vesper.report.page import document
from vesper.report.run_list import RunLine, runs_table
from vesper.report.tradeoff_chart import Tradeoff, tradeoff_section
from vesper.version import VERSION


def render_runs(lines: Sequence[RunLine], *, name: str) -> str:
    """Render the whole page.

    Args:
        lines: the runs.
        name: of the folder that was searched.
    """
    count = "1 run" if len(lines) == 1 else f"{len(lines)} runs"
    facts = [line.as_json() for line in lines]
    links = downloads(name or "runs", facts, _rows_of(facts))
    table = runs_table(lines) if lines else "<p>No runs here.</p>"
    problems = "".join(
        f'<p class="verdict warn">{escape(line.folder)}: not readable</p>'
        for line in lines
        if line.problem is not None
    )
    main = f"""<header>
<h1>Runs</h1>
<p>{count} in <b>{escape(name)}</b></p>
{links}
</header>
<section><div class="list">{table}</div></section>
{problems}
{tradeoff_section([point for line in lines for point in _tradeoff_of(line)])}
<footer>Written by vesper {VERSION}.</footer>"""
    return document(f"Runs in {name}", main)


def _tradeoff_of(line: RunLine) -> list[Tradeoff]:
    value = line.validation if line.test is None else line.test
    known = (line.method, line.metric, line.guarantee)
    method, metric, guarantee = known
    if method is None or metric is None or guarantee is None or value is None:
        return []
    return [
        Tradeoff(
            method=method,
            metric=metric,
            split="validation" if line.test is None else "test",
            guarantee=guarantee,
            epsilon=line.epsilon,
            value=value,
            data=line.data or "",
        )
    ]


def _rows_of(facts: Sequence[dict[str, object]]) -> list[Row]:
    names = list(facts[0]) if facts else []
    return [names, *([each[name] for name in names] for each in facts)]
