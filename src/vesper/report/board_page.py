"""Page of `vesper board`: the report of a run, live during training and complete afterwards."""

from html import escape

from vesper.report.contents import metric_label
from vesper.report.graphs import graphs_section
from vesper.report.html import STYLE
from vesper.report.live_run import RunStatus
from vesper.report.page import document, main_of
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
from vesper.session.journal import JournalSummary

REFRESH_SECONDS = 2
"""Seconds between two refreshes of the page."""

SIDES = {"both": "both parties, simulated", "data": "data party", "label": "label party"}

BOARD_STYLE = f"""{STYLE}
progress {{ width: 100%; height: 12px; accent-color: var(--accent); }}
header + .verdict, .verdict + header {{ margin-top: 14px; }}
#gone {{ position: sticky; bottom: 0; margin: 0; border-radius: 0; text-align: center; }}
"""

SCRIPT = f"""
const main = document.querySelector("main"), gone = document.getElementById("gone");
let current = "";
async function refresh() {{
  let text = null;
  try {{
    const response = await fetch("main", {{ cache: "no-store" }});
    if (response.ok) text = await response.text();
  }} catch (error) {{ }}
  gone.hidden = text !== null;
  if (text !== null && text !== current) {{ main.innerHTML = text; current = text; }}
  setTimeout(refresh, {1000 * REFRESH_SECONDS});
}}
refresh();
"""

BOARD_GONE = (
    '<p id="gone" class="verdict warn" role="alert" hidden>vesper board was stopped or cannot be '
    "reached. This page shows the last state it received.</p>"
    f"<noscript><p>Reload the page to update it.</p></noscript><script>{SCRIPT}</script>"
)


def board_page(main: str) -> str:
    """Wrap a main part in the whole page."""
    return document("vesper board", main, style=BOARD_STYLE, script=BOARD_GONE)


def board_main(status: RunStatus) -> str:
    """Render the main part of the page from the current state of a run."""
    journal, config = status.journal, status.config
    if status.contents is not None:
        return _status(status) + main_of(status.contents)
    if config is None:
        return f"<header><h1>Run</h1></header>{_status(status)}"
    side = (
        "" if journal is None else f", {SIDES[journal.side]}; started {moment(journal.started_at)}"
    )
    privacy, run_charges = status.privacy, status.run_charges
    release_heading = "What was released" if status.state == "finished" else "What is released"
    return f"""<header>
<h1>Training</h1>
<p>Method <b>{escape(config.run.method)}</b>{side}</p>
</header>
{_status(status)}
{"" if journal is None or status.state == "finished" else _current_task(journal)}
{figures(_figures(status))}
{"" if run_charges is None else budget_section(run_charges)}
{graphs_section(status.graphs, metric="metric")}
{"" if journal is None else charts(curve_sections(journal.epochs, metric=_metric(journal)))}
{"" if privacy is None else privacy_section(privacy, config, release_heading=release_heading)}
{settings_section(config)}"""


def _status(status: RunStatus) -> str:
    journal = status.journal
    reason = "" if journal is None else journal.reason
    last_update = "" if journal is None else f" Last update: {moment(journal.last_line_at)}."
    resume = ""
    if journal is not None and journal.side != "both":
        resume = f" To resume: vesper party {journal.side} --config FILE --resume"
    message = {
        "not started": "This party has not been started yet.",
        "running": "Running.",
        "finished": "Finished." + ("" if journal is None else f" {moment(journal.last_line_at)}."),
        "failed": f"Stopped: {reason}.{resume}",
        "lost": f"The process is gone: it was killed, or its machine went down."
        f"{last_update}{resume}",
    }[status.state]
    tone = "good" if status.state in ("running", "finished") else "warn"
    return f'<p class="verdict {tone}" role="status">{escape(message)}</p>'


def _current_task(journal: JournalSummary) -> str:
    task_progress = journal.task_progress
    if task_progress is None:
        return "<p>Reading the tables.</p>"
    total = f" of {task_progress.total:,}" if task_progress.total else ""
    value = (
        f' value="{task_progress.done}" max="{task_progress.total}"' if task_progress.total else ""
    )
    note = f"; {task_progress.note.replace('  ', ', ')}" if task_progress.note else ""
    return (
        f"<section><h2>{escape(task_progress.task.capitalize())}</h2><progress{value}></progress>"
        f'<p class="note">{task_progress.done:,}{total}{escape(note)}</p></section>'
    )


def _figures(status: RunStatus) -> list[tuple[str, str]]:
    journal, labelled_values = status.journal, []
    if journal is not None and journal.epochs:
        newest, planned = journal.epochs[-1], journal.planned or {}
        labelled_values.append(
            (f"epoch, of at most {planned.get('epochs', '-')}", str(newest.epoch + 1))
        )
        labelled_values.append(
            (f"stage, of 0 to {planned.get('stages', 1) - 1}", str(newest.stage))
        )
        values = [facts.validation for facts in journal.epochs if facts.validation is not None]
        if values:
            labelled_values.insert(
                0, (f"{_metric(journal)}, validation, best so far", f"{max(values):.1f} %")
            )
        if newest.loss is not None:
            labelled_values.append(("loss", f"{newest.loss:.3f}"))
    if status.privacy is None or status.config is None:
        return labelled_values
    return labelled_values + privacy_figures(status.privacy, status.config)


def _metric(journal: JournalSummary) -> str:
    return metric_label((journal.planned or {}).get("metric") or "metric")
