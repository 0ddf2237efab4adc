"""Evidence about a run: results of attacks and audits, and the degree histogram.

Each comes from a JSON file: the `--json` output of `vesper attack`, `vesper audit` or
`vesper degrees`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from vesper.drawing.svg import HEIGHT, WIDTH, Frame, drawing, round_ticks, rows_of, text
from vesper.errors import InputError

KINDS = {"attack": "auc", "audit": "epsilon_lower_bound", "degrees": "mean_degree_at_least"}
"""Kinds of evidence, each with a field that only this kind has."""


@dataclass(frozen=True)
class Evidence:
    """One piece of evidence."""

    kind: str
    """`attack`, `audit` or `degrees`."""
    facts: Mapping[str, Any]


def read_evidence(path: Path, *, method: str) -> Evidence:
    """Read one piece of evidence; refuse one about another method than that of the run.

    Raises:
        InputError: the file cannot be read, is no evidence, or is about another method.
    """
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        kind = next(kind for kind, field in KINDS.items() if field in facts)
        evidence = Evidence(kind, facts)
        _section(evidence)  # fails if a field is missing
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, TypeError, KeyError, StopIteration):
        raise InputError(
            f"{path}: expected the --json output of `vesper attack`, `vesper audit` or "
            f"`vesper degrees`, found something else"
        ) from None
    if kind != "degrees" and facts["method"] != method:
        raise InputError(
            f"{path}: expected evidence about method '{method}', got evidence about "
            f"'{facts['method']}'; a report is about one run"
        )
    return evidence


def evidence_sections(evidence: Sequence[Evidence]) -> list[str]:
    """Render one section per piece of evidence, as HTML."""
    return [_section(each) for each in evidence]


def _section(evidence: Evidence) -> str:
    facts = evidence.facts
    if evidence.kind == "degrees":
        note = f"Noisy counts; epsilon {float(facts['spent_epsilon']):g} was charged for them."
        chart = degree_chart([float(count) for count in facts["counts"]])
        return f'<section><h2>Degrees</h2>{chart}<p class="note">{note}</p></section>'
    title, rows = (_attack if evidence.kind == "attack" else _audit)(facts)
    lines = "".join(f"<tr><th>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in rows)
    return f"<section><h2>{escape(title)}</h2><table>{lines}</table></section>"


Rows = list[tuple[str, str]]


def _attack(facts: Mapping[str, Any]) -> tuple[str, Rows]:
    interval = f"{facts['ci_low']:.3f} to {facts['ci_high']:.3f}"
    rows = [
        ("AUC; 0.5 is guessing", f"{facts['auc']:.3f} (95 % confidence: {interval})"),
        ("True positives at 0.1 % false positives", f"{100 * facts['tpr_at_0.1pct_fpr']:.2f} %"),
        ("The attacker knows", str(facts["knows"])),
    ]
    return f"Attack: {facts['attack']}", rows


def _audit(facts: Mapping[str, Any]) -> tuple[str, Rows]:
    stated = [
        (f"{kind.capitalize()} epsilon", f"{float(facts[f'{kind}_epsilon']):g}")
        for kind in ("certified", "claimed")
        if facts[f"{kind}_epsilon"] is not None
    ]
    confidence = f"{100 * facts['confidence']:g} % confidence"
    unit = str(facts.get("unit", "edge"))  # older files know no other unit
    rows = [
        ("Epsilon is at least", f"{float(facts['epsilon_lower_bound']):.3g} ({confidence})"),
        *stated,
        ("Verdict", str(facts["verdict"])),
        ("Detections, false alarms", f"{facts['detections']}, {facts['false_alarms']}"),
        (f"Runs with the {unit}, and as many without", str(facts["observations"])),
    ]
    return "Audit" if unit == "edge" else "Audit with canary nodes", rows


def degree_chart(counts: Sequence[float]) -> str:
    """Draw how many nodes have each degree; the last bar counts that degree and all above.

    A count that noise made negative has no bar.
    """
    ticks = round_ticks(0.0, max(*counts, 1.0))
    frame = Frame(x_range=(-0.5, len(counts) - 0.5), y_range=(ticks[0], ticks[-1]), top=24)
    shapes = rows_of(frame, ticks, form="g")
    wide = max((WIDTH - frame.left - frame.right) / len(counts) - 1, 0.5)
    for degree, count in enumerate(counts):
        top, floor = frame.y(max(count, 0.0)), frame.y(0.0)
        shapes.append(
            f'<rect x="{frame.x(degree) - wide / 2:.1f}" y="{top:.1f}" width="{wide:.1f}" '
            f'height="{floor - top:.1f}" class="spent"/>'
        )
    last = len(counts) - 1
    for degree in sorted({0, last // 2, last}):
        label = f"\u2265 {degree}" if degree == last else str(degree)
        shapes.append(text(frame.x(degree), HEIGHT - 24, label))
    shapes.append(text((frame.left + WIDTH - frame.right) / 2, HEIGHT - 6, "number of neighbours"))
    return drawing(shapes, title="Noisy histogram of degrees")
