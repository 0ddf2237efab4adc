"""Sections of a page, as HTML: figures, privacy, budget, learning curves, settings."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape

from vesper.drawing.svg import gauge
from vesper.method.settings import Config
from vesper.report.budget_section import RunCharges
from vesper.report.learning_curves import loss_chart, validation_chart
from vesper.report.privacy import Privacy
from vesper.report.words import labels_of, meaning_of, not_covered, release_description
from vesper.session.observer import EpochFacts


def figures(labelled_values: Sequence[tuple[str, str]]) -> str:
    """Render figures in large type, from pairs of label and value."""
    cards = (
        f'<div class="figure"><b>{escape(value)}</b><span>{escape(label)}</span></div>'
        for label, value in labelled_values
    )
    return f'<div class="figures">{"".join(cards)}</div>'


def privacy_figures(privacy: Privacy, config: Config) -> list[tuple[str, str]]:
    """Labels and values of the guarantees: for the graph, and for labels if they are protected."""
    epsilon = config.privacy.label_epsilon
    labels = [] if epsilon is None else [("epsilon per label", f"{epsilon:g}")]
    if privacy.kind == "edge-free":
        return [("epsilon: no edge is read", "0"), *labels]
    if privacy.kind != "certified":
        return [("certified epsilon: none", "\u221e"), *labels]
    name = "epsilon per node" if privacy.unit == "node" else "epsilon"
    kind = f"certified {name}" if privacy.is_private else f"{name}, if noise were not simulated"
    delta = "-" if privacy.delta is None else f"{privacy.delta:g}"
    return [(kind, f"{privacy.epsilon:g}"), ("delta", delta), *labels]


def privacy_section(
    privacy: Privacy, config: Config, *, release_heading: str = "What was released"
) -> str:
    """Render what holds, what it means, what it does not cover, and what is released."""
    tone = "good" if privacy.is_private else "warn"
    points = not_covered(privacy)
    uncovered = f"<h3>What is not covered</h3>{bullets(points)}" if points else ""
    return (
        f'<section><h2>Privacy</h2><p class="verdict {tone}">{escape(privacy.verdict)}</p>'
        f"{''.join(f'<p>{words}</p>' for words in meaning_of(privacy))}"
        f"{uncovered}<h3>Labels</h3><p>{labels_of(config)}</p>"
        f"<h3>{escape(release_heading)}</h3>{table(_release_facts(privacy, config))}</section>"
    )


def _release_facts(privacy: Privacy, config: Config) -> dict[str, str]:
    stds = ", ".join(f"{value:.4g}" for value in privacy.noise_stds if value)
    computed = (
        {"Computed from edges": release_description(config)}
        if privacy.kind == "certified" and stds
        else {}
    )
    return {
        **computed,
        "Noise": escape(privacy.noise),
        "Releases of this run": str(privacy.releases),
        "Standard deviation of the noise": f"at least {stds}"
        if stds and privacy.is_upper_bound
        else stds or "-",
        "The budget covers": escape(privacy.covers),
    }


def budget_section(run_charges: RunCharges) -> str:
    """Render what this run has spent, and every charge in order."""
    rows = {"Spent by this run": f"epsilon {run_charges.spent_epsilon:.4g}"}
    for number, charge in enumerate(run_charges.charges, start=1):
        when = "charge" if charge.time is None else moment(charge.time)
        rows[f"{number}. {when}"] = escape(charge.what)
    bar = ""
    if run_charges.planned_epsilon is not None and math.isfinite(run_charges.planned_epsilon):
        bar = gauge(run_charges.spent_epsilon, run_charges.planned_epsilon, name="epsilon")
    note = f'<p class="note">{escape(ONLY_THIS_RUN)}</p>'
    return f"<section><h2>Budget of this run</h2>{bar}{table(rows)}{note}</section>"


ONLY_THIS_RUN = (
    "Charges and releases of this run only. What else was charged under the graph's name (counts, "
    "other runs) adds to this; for the owner, `vesper budget show` lists everything and says how "
    "it adds up."
)


def moment(time: float) -> str:
    """Format a time for people, in UTC so that it reads the same everywhere."""
    return f"{datetime.fromtimestamp(time, tz=UTC):%Y-%m-%d %H:%M:%S} UTC"


def curve_sections(epochs: Sequence[EpochFacts], *, metric: str) -> list[str]:
    """Render learning curves, where this side knows them."""
    if not epochs or any(facts.validation is None for facts in epochs):
        return []
    chart = validation_chart(epochs, metric=metric)
    parts = [
        f"<section><h2>{escape(metric)} on validation nodes</h2>{chart}"
        f'<p class="note">In percent after each epoch; points mark the best value of the stage so '
        f"far.</p></section>"
    ]
    if all(facts.loss is not None for facts in epochs):
        parts.append(
            f"<section><h2>Loss</h2>{loss_chart(epochs)}"
            f'<p class="note">Mean over the batches of each epoch, on training nodes.</p></section>'
        )
    return parts


def charts(parts: Sequence[str]) -> str:
    """Place sections with charts side by side where there is space."""
    return f'<div class="charts">{"".join(parts)}</div>' if parts else ""


def settings_section(config: Config, *, command: str | None = None) -> str:
    """Render all settings, those that affect epsilon first, and the command to repeat the run."""
    parts = []
    for name, values in config.model_dump().items():
        cells = {
            key: f"<code>{escape(format_value(value))}</code>" for key, value in values.items()
        }
        heading = "Affect epsilon" if name == "privacy" else "Do not affect epsilon"
        parts.append(f"<div><h3>{heading}</h3>{table(cells)}</div>")
    repeat = f"<h3>Repeat this run</h3><p><code>{escape(command)}</code></p>" if command else ""
    return f'<section><h2>Settings</h2><div class="two">{"".join(parts)}</div>{repeat}</section>'


def format_value(value: object) -> str:
    """Format the value of a setting."""
    if value is None:
        return "not set"
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    return f"{value:g}" if isinstance(value, float) else str(value)


def table(rows: Mapping[str, str]) -> str:
    """Render rows of a name and a value; values are HTML."""
    cells = (f"<tr><th>{escape(name)}</th><td>{value}</td></tr>" for name, value in rows.items())
    return f"<table>{''.join(cells)}</table>"


def bullets(points: Sequence[str]) -> str:
    """Render a list of points; points are HTML."""
    return f"<ul>{''.join(f'<li>{point}</li>' for point in points)}</ul>"
