"""The page of `vesper board`: the report of a run, while it is made and after."""

from html import escape

from vesper.report.contents import metric_label
from vesper.report.graphs import graphs_section
from vesper.report.html import STYLE
from vesper.report.live_run import Watched
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
from vesper.session.journal import JournalRead

SECONDS = 2
"""Between two looks."""

SIDES = {"both": "both parties, simulated", "data": "data party", "label": "label party"}

BOARD_STYLE = f"""{STYLE}
progress {{ width: 100%; height: 12px; accent-color: var(--accent); }}
header + .verdict, .verdict + header {{ margin-top: 14px; }}
#gone {{ position: sticky; bottom: 0; margin: 0; border-radius: 0; text-align: center; }}
"""

SCRIPT = f"""
const main = document.querySelector("main"), gone = document.getElementById("gone");
let shown = "";
async function look() {{
  let text = null;
  try {{
    const answer = await fetch("main", {{ cache: "no-store" }});
    if (answer.ok) text = await answer.text();
  }} catch (error) {{ }}
  gone.hidden = text !== null;
  if (text !== null && text !== shown) {{ main.innerHTML = text; shown = text; }}
  setTimeout(look, {1000 * SECONDS});
}}
look();
"""

GONE = (
    '<p id="gone" class="verdict warn" role="alert" hidden>vesper board was stopped, or cannot be '
    "reached: this page is as old as its last answer.</p>"
    f"<noscript><p>Load the page again to see what is new.</p></noscript><script>{SCRIPT}</script>"
)


def board_page(main: str) -> str:
    """The whole page around its main part."""
    return document("vesper board", main, style=BOARD_STYLE, script=GONE)


def board_main(watched: Watched) -> str:
    """What the page says of a run at this moment."""
    told, config = watched.told, watched.config
    if watched.contents is not None:
        return _status(watched) + main_of(watched.contents)
    if config is None:
        return f"<header><h1>Run</h1></header>{_status(watched)}"
    side = "" if told is None else f", {SIDES[told.side]}; begun {moment(told.began)}"
    privacy, charged = watched.privacy, watched.charged
    released = "What was released" if watched.state == "finished" else "What is released"
    return f"""<header>
<h1>Training</h1>
<p>Method <b>{escape(config.run.method)}</b>{side}</p>
</header>
{_status(watched)}
{"" if told is None or watched.state == "finished" else _doing(told)}
{figures(_figures(watched))}
{"" if charged is None else budget_section(charged)}
{graphs_section(watched.graphs, metric="metric")}
{"" if told is None else charts(curve_sections(told.epochs, metric=_metric(told)))}
{"" if privacy is None else privacy_section(privacy, config, released=released)}
{settings_section(config)}"""


def _status(watched: Watched) -> str:
    told = watched.told
    why = "" if told is None else told.why
    last = "" if told is None else f" Its last sign was at {moment(told.last)}."
    resume = ""
    if told is not None and told.side != "both":
        resume = f" Go on with: vesper party {told.side} --config FILE --resume"
    words = {
        "not begun": "Nobody has started this party yet.",
        "running": "Running.",
        "finished": "Finished." + ("" if told is None else f" {moment(told.last)}."),
        "failed": f"Stopped: {why}.{resume}",
        "lost": f"The process is gone: it was killed, or its machine went down.{last}{resume}",
    }[watched.state]
    tone = "good" if watched.state in ("running", "finished") else "warn"
    return f'<p class="verdict {tone}" role="status">{escape(words)}</p>'


def _doing(told: JournalRead) -> str:
    doing = told.doing
    if doing is None:
        return "<p>Reading the tables.</p>"
    much = f" of {doing.total:,}" if doing.total else ""
    value = f' value="{doing.done}" max="{doing.total}"' if doing.total else ""
    note = f"; {doing.note.replace('  ', ', ')}" if doing.note else ""
    return (
        f"<section><h2>{escape(doing.task.capitalize())}</h2><progress{value}></progress>"
        f'<p class="note">{doing.done:,}{much}{escape(note)}</p></section>'
    )


def _figures(watched: Watched) -> list[tuple[str, str]]:
    told, shown = watched.told, []
    if told is not None and told.epochs:
        newest, agreed = told.epochs[-1], told.agreed or {}
        shown.append((f"epoch, of at most {agreed.get('epochs', '-')}", str(newest.epoch + 1)))
        shown.append((f"stage, of 0 to {agreed.get('stages', 1) - 1}", str(newest.stage)))
        values = [facts.validation for facts in told.epochs if facts.validation is not None]
        if values:
            shown.insert(0, (f"{_metric(told)}, validation, best so far", f"{max(values):.1f} %"))
        if newest.loss is not None:
            shown.append(("loss", f"{newest.loss:.3f}"))
    if watched.privacy is None or watched.config is None:
        return shown
    return shown + privacy_figures(watched.privacy, watched.config)


def _metric(told: JournalRead) -> str:
    return metric_label((told.agreed or {}).get("metric") or "metric")
