"""One HTML page about one model, whole in itself: no script, no font, no picture from elsewhere."""

import contextlib
import os
import tempfile
from html import escape
from pathlib import Path

from vesper.errors import InputError
from vesper.report.budget_section import accounts_section
from vesper.report.charts import (
    MOST_CLASSES,
    confusion_chart,
    numbers_chart,
    ranks_chart,
    roc_chart,
    stage_chart,
)
from vesper.report.contents import Contents, Evaluation, NumberEvaluation
from vesper.report.evidence_section import evidence_sections
from vesper.report.graphs import graphs_section
from vesper.report.html import STYLE
from vesper.report.sections import (
    budget_section,
    charts,
    curve_sections,
    figures,
    privacy_figures,
    privacy_section,
    settings_section,
)
from vesper.version import VERSION

WHERE = {False: "both numbers are equal", True: "its place in both orders is the same"}


def write_report(contents: Contents, path: Path) -> Path:
    """Write the page, whole or not at all; an old page at `path` is replaced."""
    return write_page(render(contents), path)


def write_page(page: str, path: Path) -> Path:
    """Write a text, whole or not at all; an old file at `path` is replaced."""
    if path.is_dir():
        raise InputError(f"{path}: expected a file for the report, got a folder; add a name")
    partial = ""
    try:
        handle, partial = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(page)
        Path(partial).chmod(0o644)
        os.replace(partial, path)
    except OSError as error:
        raise InputError(f"{path}: the report cannot be written ({error.strerror})") from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(partial)  # gone already when it was moved into place
    return path


def render(contents: Contents) -> str:
    """The page as text."""
    title = f"{contents.method}: {contents.metric_label} {_figures(contents)[0][1]}"
    return document(title, main_of(contents))


def document(title: str, main: str, *, style: str = STYLE, script: str = "") -> str:
    """A whole document around its main part; nothing is loaded from anywhere."""
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
    """What the page says."""
    run_charges = contents.privacy.run_charges
    return f"""<header>
<h1>Model report</h1>
<p>Method <b>{escape(contents.method)}</b>{_trained_on(contents)}</p>
</header>
{figures(_figures(contents))}
{privacy_section(contents.privacy, contents.config)}
{accounts_section(contents.accounts)}
{"" if run_charges is None else budget_section(run_charges)}
{graphs_section(contents.graphs, metric=contents.metric_label)}
{charts(_charts(contents))}
{settings_section(contents.config, command=contents.command)}
<footer>Written by vesper {VERSION}. Numbers on this page come from labels and from values that were
released with the noise stated above; nothing else was computed from edges.</footer>"""


def _trained_on(contents: Contents) -> str:
    sizes = ", ".join(f"{count:,} {escape(what)}" for what, count in contents.sizes.items())
    took = f"; {contents.seconds:.1f} seconds" if contents.seconds is not None else ""
    return (f", trained on {sizes}" if sizes else "") + took


def _figures(contents: Contents) -> list[tuple[str, str]]:
    """What stands in large letters."""
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
            f"{escape(contents.metric_label)} in percent after each stage; the ring is the one "
            f"that validation chose.</p></section>"
        )
    if contents.evaluation is not None:
        parts.append(_evaluation_section(contents.evaluation))
    parts += curve_sections(contents.epochs, metric=contents.metric_label)
    return parts + evidence_sections(contents.evidence)


def _evaluation_section(evaluation: Evaluation) -> str:
    where = f"On {len(evaluation.labels):,} {evaluation.split} nodes."
    if evaluation.split == "validation":
        where += " They also chose the model, so expect a little less on new nodes."
    if isinstance(evaluation, NumberEvaluation):
        is_order = evaluation.name == "spearman"
        chart = (ranks_chart if is_order else numbers_chart)(
            evaluation.labels, evaluation.predicted
        )
        name = "Predicted order" if is_order else "Predicted numbers"
        where = f"A point is a node; on the dashed line {WHERE[is_order]}. {where}"
    elif len(evaluation.classes) == 2:
        chart, name = roc_chart(evaluation.scores, evaluation.labels), "ROC curve"
        where = f"Positive is class {evaluation.classes[1]}. {where}"
    else:
        chart = confusion_chart(evaluation.scores, evaluation.labels, evaluation.classes)
        name = "Confusion of classes"
        more = len(evaluation.classes) - MOST_CLASSES
        where = (f"Without {more} rarer classes. " if more > 0 else "") + where
        where = f"Of each true class (row), percent that are given each class. {where}"
    return f'<section><h2>{name}</h2>{chart}<p class="note">{escape(where)}</p></section>'
