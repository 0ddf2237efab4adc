"""What the page of a run shows, as JSON and as rows: the content of its downloads.

Rows have a section, a name and a value. Paths, ids and names of graphs are on no page, and in no
download.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from vesper.report.classification_charts import confusion_counts
from vesper.report.contents import ClassEvaluation, Contents, NumberEvaluation
from vesper.report.downloads import Row
from vesper.report.sections import moment


def run_facts(contents: Contents) -> dict[str, Any]:
    """Return the facts on a page about a run."""
    privacy, charged = contents.privacy, contents.privacy.run_charges
    return {
        "run": contents.name or None,
        "data": contents.data or None,
        "date": None if contents.date is None else moment(contents.date),
        "method": contents.method,
        "metric": contents.metric,
        "validation": contents.validation,
        "test": contents.test,
        "seconds": contents.seconds,
        "chosen_stage": contents.chosen_stage,
        "stages": [dict(stage) for stage in contents.stages],
        "sizes": dict(contents.sizes),
        "privacy": {
            "verdict": privacy.verdict,
            "plan": privacy.kind,
            "is_private": privacy.is_private,
            "epsilon": privacy.epsilon,
            "claimed_epsilon": privacy.claimed_epsilon,
            "delta": privacy.delta,
            "unit": privacy.unit,
            "best_guess": privacy.best_guess,
            "noise": privacy.noise,
            "noise_stds": list(privacy.noise_stds),
            "releases": privacy.releases,
            "covers": privacy.covers,
        },
        "spent_epsilon": None if charged is None else charged.spent_epsilon,
        "charges": [] if charged is None else [charge.what for charge in charged.charges],
        "accounts": [asdict(line) for line in contents.accounts],
        "graphs": [asdict(line) for line in contents.graphs],
        "epochs": [asdict(epoch) for epoch in contents.epochs],
        "evaluation": _evaluation_facts(contents),
        "evidence": [dict(each.facts) for each in contents.evidence],
        "settings": contents.config.model_dump(mode="json"),
        "command": contents.command,
    }


def _evaluation_facts(contents: Contents) -> dict[str, Any] | None:
    """Summarise the predictions; those for single nodes stay where they are."""
    evaluation = contents.evaluation
    if evaluation is None:
        return None
    facts: dict[str, Any] = {"split": evaluation.split, "nodes": len(evaluation.labels)}
    if isinstance(evaluation, NumberEvaluation):
        return facts
    return {**facts, "classes": list(evaluation.classes), "confusion": _confusion(evaluation)}


def _confusion(evaluation: ClassEvaluation) -> list[list[int]]:
    """Count the nodes of each true class (row) by predicted class (column)."""
    counts: list[list[int]] = confusion_counts(evaluation.scores, evaluation.labels).tolist()
    return counts


def run_rows(contents: Contents) -> list[Row]:
    """Return the same facts as rows for a spreadsheet."""
    return [("section", "name", "value"), *_rows("", run_facts(contents))]


def _rows(section: str, value: Any) -> Iterator[Row]:
    items = value.items() if isinstance(value, dict) else enumerate(value, start=1)
    for name, inner in items:
        if isinstance(inner, dict | list | tuple):
            yield from _rows(f"{section} {name}".strip(), inner)
        else:
            yield (section or "run", name, inner)
