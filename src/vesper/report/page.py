"""One self-contained HTML page about one model: no script, font or image from elsewhere."""

from html import escape
from pathlib import Path

from vesper.errors import InputError
from vesper.files import replacement_of
from vesper.report.budget_section import accounts_section
from vesper.report.charts import stage_chart
from vesper.report.contents import Contents
from vesper.report.downloads import downloads
from vesper.report.evaluation_section import evaluation_sections
from vesper.report.evidence_section import evidence_sections
from vesper.report.graphs import graphs_section
from vesper.report.html import STYLE
from vesper.report.run_facts import run_facts, run_rows
from vesper.report.sections import (
    budget_section,
    charts,
    curve_sections,
    figures,
    moment,
    privacy_figures,
    privacy_section,
    settings_section,
)
from vesper.version import VERSION


def write_report(contents: Contents, path: Path) -> Path:
    """Write the page atomically; an existing page at `path` is replaced."""
    return write_page(render(contents), path)


def write_page(page: str, path: Path) -> Path:
    """Write a text atomically; an existing file at `path` is replaced.

    Raises:
        InputError: the path is a folder or cannot be written.
    """
    if path.is_dir():
        raise InputError(f"{path}: expected a file for the report, got a folder; add a file name")
    try:
        with replacement_of(path) as file:
            file.write(page.encode())
    except OSError as error:
        raise InputError(f"{path}: the report cannot be written ({error.strerror})") from None
    return path


def render(contents: Contents) -> str:
    """Render the whole page."""
    title = f"{contents.method}: {contents.metric_label} {_figures(contents)[0][1]}"
    if contents.name:
        title = f"{contents.name}, {title}"
    return document(title, main_of(contents))


def document(title: str, main: str, *, style: str = STYLE, script: str = "") -> str:
    """Wrap a main part in a complete HTML document, which loads nothing from elsewhere."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<main>
{main}
</main>
{script}
</body>
</html>
"""


def main_of(contents: Contents) -> str:
    """Render the main part of the page."""
    run_charges = contents.privacy.run_charges
    return f"""<header>
<h1>Model report</h1>
{_run_line(contents)}<p>Method <b>{escape(contents.method)}</b>{_trained_on(contents)}</p>
{downloads(contents.name or contents.method, run_facts(contents), run_rows(contents))}
</header>
{figures(_figures(contents))}
{privacy_section(contents.privacy, contents.config)}
{accounts_section(contents.accounts)}
{"" if run_charges is None else budget_section(run_charges)}
{graphs_section(contents.graphs, metric=contents.metric_label)}
{charts(_charts(contents))}
{settings_section(contents.config, command=contents.command)}
<footer>Written by vesper {VERSION}. The numbers on this page come from labels and from values that
were released with the noise stated above; nothing else was computed from edges.</footer>"""


def _run_line(contents: Contents) -> str:
    """Name the run, its data and when it started, as far as they are known."""
    parts = [f"Run <b>{escape(contents.name)}</b>"] if contents.name else []
    parts += [f"data <b>{escape(contents.data)}</b>"] if contents.data else []
    parts += [f"started {moment(contents.date)}"] if contents.date is not None else []
    return f"<p>{', '.join(parts)}</p>\n" if parts else ""


def _trained_on(contents: Contents) -> str:
    sizes = ", ".join(f"{count:,} {escape(what)}" for what, count in contents.sizes.items())
    duration = f"; {contents.seconds:.1f} seconds" if contents.seconds is not None else ""
    return (f", trained on {sizes}" if sizes else "") + duration


def _figures(contents: Contents) -> list[tuple[str, str]]:
    """Labels and values of the figures in large type."""
    label = contents.metric_label
    labelled_values = [(f"{label}, validation", f"{contents.validation:.1f} %")]
    if contents.test is not None:
        labelled_values.insert(0, (f"{label}, test", f"{contents.test:.1f} %"))
    return labelled_values + privacy_figures(contents.privacy, contents.config)


def _charts(contents: Contents) -> list[str]:
    parts = []
    if len(contents.stages) > 1:
        keys = '<i class="key validation"></i>validation '
        if all("test" in stage for stage in contents.stages):
            keys += '<i class="key test"></i>test '
        chart = stage_chart(
            contents.stages, chosen=contents.chosen_stage, metric=contents.metric_label
        )
        parts.append(
            f"<section><h2>What the graph adds</h2>{chart}"
            f'<p class="note">{keys}<i class="key dashed"></i>without the graph (MLP). '
            f"{escape(contents.metric_label)} in percent after each stage; the ring marks the "
            f"stage that validation chose.</p></section>"
        )
    if contents.evaluation is not None:
        parts += evaluation_sections(contents.evaluation)
    parts += curve_sections(contents.epochs, metric=contents.metric_label)
    return parts + evidence_sections(contents.evidence)
