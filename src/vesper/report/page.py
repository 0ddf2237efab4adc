"""One HTML page about one model, whole in itself: no script, no font, no picture from elsewhere."""

import contextlib
import math
import os
import tempfile
from collections.abc import Mapping
from html import escape
from pathlib import Path

from vesper.errors import InputError
from vesper.report.charts import MOST_CLASSES, confusion_chart, roc_chart, stage_chart
from vesper.report.contents import Contents, Judged
from vesper.report.privacy import Privacy
from vesper.report.style import STYLE
from vesper.report.words import meaning_of, not_covered
from vesper.version import VERSION


def write_report(contents: Contents, path: Path) -> Path:
    """Write the page, whole or not at all; an old page at `path` is replaced."""
    if path.is_dir():
        raise InputError(f"{path}: expected a file for the report, got a folder; add a name")
    page = render(contents)
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
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<header>
<h1>Model report</h1>
<p>Method <b>{escape(contents.method)}</b>{_trained_on(contents)}</p>
</header>
<div class="figures">{"".join(_figure(*figure) for figure in _figures(contents))}</div>
{_privacy(contents)}
{_charts(contents)}
{_settings(contents)}
<footer>Written by vesper {VERSION}. Numbers on this page come from labels and from values that were
released with the noise stated above; nothing else was computed from edges.</footer>
</main>
</body>
</html>
"""


def _trained_on(contents: Contents) -> str:
    sizes = ", ".join(f"{count:,} {escape(what)}" for what, count in contents.sizes.items())
    took = f"; {contents.seconds:.1f} seconds" if contents.seconds is not None else ""
    return (f", trained on {sizes}" if sizes else "") + took


def _figures(contents: Contents) -> list[tuple[str, str]]:
    """What stands in large letters."""
    label = contents.metric_label
    figures = [(f"{label}, validation", f"{contents.validation:.1f} %")]
    if contents.test is not None:
        figures.insert(0, (f"{label}, test", f"{contents.test:.1f} %"))
    privacy = contents.privacy
    if privacy.plan == "edge-free":
        return [*figures, ("epsilon: no edge is read", "0")]
    if privacy.plan == "certified":
        kind = "certified epsilon" if privacy.is_private else "epsilon, if noise were real"
        delta = "-" if privacy.delta is None else f"{privacy.delta:g}"
        return [*figures, (kind, f"{privacy.epsilon:g}"), ("delta", delta)]
    return [*figures, ("certified epsilon: none", "\u221e")]


def _figure(label: str, value: str) -> str:
    return f'<div class="figure"><b>{escape(value)}</b><span>{escape(label)}</span></div>'


def _privacy(contents: Contents) -> str:
    privacy = contents.privacy
    tone = "good" if privacy.is_private else "warn"
    points = not_covered(privacy, contents.config)
    uncovered = f"<h3>What is not covered</h3>{_list(points)}" if points else ""
    return (
        f'<section><h2>Privacy</h2><p class="verdict {tone}">{escape(privacy.verdict)}</p>'
        f"{''.join(f'<p>{words}</p>' for words in meaning_of(privacy))}"
        f"{uncovered}<h3>What was released</h3>{_table(_released(privacy))}</section>"
    )


def _released(privacy: Privacy) -> dict[str, str]:
    stds = ", ".join(f"{value:.4g}" for value in privacy.noise_stds if value)
    rows = {
        "Noise": escape(privacy.noise),
        "Releases": str(privacy.releases),
        "Standard deviation of the noise": stds or "-",
        "The budget counts": escape(privacy.covers),
    }
    charged = privacy.charged
    if charged is None:
        return rows
    rows["Spent on this graph"] = f"epsilon {charged.spent_epsilon:.4g}"
    if charged.left_epsilon is not None:
        rows["Left for this graph"] = f"epsilon {charged.left_epsilon:.2g}"
    rows["Charges"] = "<br>".join(f"{c.sequence}. {escape(c.what)}" for c in charged.charges)
    if charged.head is not None:
        rows["Head of the ledger, to note down"] = f"<code>{escape(charged.head)}</code>"
    return rows


def _charts(contents: Contents) -> str:
    charts = []
    if len(contents.stages) > 1:
        keys = '<i class="key validation"></i>validation '
        if all("test" in stage for stage in contents.stages):
            keys += '<i class="key test"></i>test '
        chart = stage_chart(
            contents.stages, chosen=contents.chosen_stage, metric=contents.metric_label
        )
        charts.append(
            f"<section><h2>What the graph adds</h2>{chart}"
            f'<p class="note">{keys}<i class="key dashed"></i>without the graph (MLP). '
            f"{escape(contents.metric_label)} in percent after each stage; the ring is the one "
            f"that validation chose.</p></section>"
        )
    if contents.judged is not None:
        charts.append(_judged(contents.judged))
    return f'<div class="charts">{"".join(charts)}</div>' if charts else ""


def _judged(judged: Judged) -> str:
    where = f"On {len(judged.labels):,} {judged.split} nodes."
    if judged.split == "validation":
        where += " They also chose the model, so expect a little less on new nodes."
    if len(judged.classes) == 2:
        chart, name = roc_chart(judged.scores, judged.labels), "ROC curve"
        where = f"Positive is class {judged.classes[1]}. {where}"
    else:
        chart = confusion_chart(judged.scores, judged.labels, judged.classes)
        name = "Confusion of classes"
        more = len(judged.classes) - MOST_CLASSES
        where = (f"Without {more} rarer classes. " if more > 0 else "") + where
        where = f"Of each true class (row), percent that are given each class. {where}"
    return f'<section><h2>{name}</h2>{chart}<p class="note">{escape(where)}</p></section>'


def _settings(contents: Contents) -> str:
    tables = contents.config.model_dump()
    parts = []
    for name, values in tables.items():
        changed = {key: f"<code>{escape(_shown(value))}</code>" for key, value in values.items()}
        heading = "Change epsilon" if name == "privacy" else "Cannot change epsilon"
        parts.append(f"<div><h3>{heading}</h3>{_table(changed)}</div>")
    return f'<section><h2>Settings</h2><div class="two">{"".join(parts)}</div></section>'


def _shown(value: object) -> str:
    if value is None:
        return "chosen by the method"
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _table(rows: Mapping[str, str]) -> str:
    """Rows of a name and HTML."""
    cells = (f"<tr><th>{escape(name)}</th><td>{value}</td></tr>" for name, value in rows.items())
    return f"<table>{''.join(cells)}</table>"


def _list(points: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{point}</li>' for point in points)}</ul>"
