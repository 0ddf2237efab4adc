"""What is protected from whom, where there are several data parties: an account each.

| account | protected from |
| --- | --- |
| edges of a data party | the label party and all other data parties together |
| edges of the label party's own graph | all data parties together |
| labels, where they are protected | all data parties together |
"""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from vesper.report.charged import read_charged
from vesper.report.lines import lines_table, number

NOTE = (
    "Each account is of its own: none is spent by another, and each guarantee holds even if all "
    "other parties put together what they see. An edge that two parties both know of is a record "
    "of both: what can be learned about it is the sum."
)


@dataclass(frozen=True, kw_only=True)
class AccountLine:
    """One account; None is what this side does not know."""

    protected: str
    against: str
    epsilon: float | None
    delta: float | None
    releases: int | None = None
    spent_epsilon: float | None = None
    remark: str = ""


def account_lines(folder: Path, result: Mapping[str, Any], *, run: str) -> tuple[AccountLine, ...]:
    """Find the accounts of a run; none where there is one data party.

    Args:
        folder: with `result.json`, and with the ledgers where it is a simulation's.
        result: what `result.json` says.
        run: what those ledgers call the run.
    """
    parties = result.get("parties") or ()
    lines = [_edges_of(party, folder, run=run) for party in parties]
    label_epsilon = result["privacy"]["label_epsilon"]
    if parties and label_epsilon is not None:
        lines.append(
            AccountLine(
                protected="labels of training and validation nodes",
                against="all data parties together",
                epsilon=label_epsilon,
                delta=0.0,
            )
        )
    return tuple(lines)


def accounts_section(lines: tuple[AccountLine, ...]) -> str:
    """A table with a line an account, as HTML; nothing where there is but one data party."""
    if not lines:
        return ""
    columns = {
        "account": [line.protected for line in lines],
        "protected from": [line.against for line in lines],
        "epsilon": [number(line.epsilon, "g") for line in lines],
        "delta": [number(line.delta, "g") for line in lines],
        "spent": [number(line.spent_epsilon, ".3g") for line in lines],
        "releases": [number(line.releases, "d") for line in lines],
        "": [line.remark for line in lines],
    }
    return (
        f"<section><h2>What is protected from whom</h2>{lines_table(columns)}"
        f'<p class="note">{escape(NOTE)}</p></section>'
    )


def _edges_of(party: Mapping[str, Any], folder: Path, *, run: str) -> AccountLine:
    facts, name = party["privacy"], party["name"]
    charged = read_charged(folder / f"ledger-{name}.sqlite", run=run)
    return AccountLine(
        protected=f"edges of {name}, the label party's own graph"
        if party["own"]
        else f"edges of {name}",
        against="all data parties together"
        if party["own"]
        else "the label party and all other data parties together",
        epsilon=facts["certified_epsilon"],
        delta=facts["delta"],
        releases=facts["releases"],
        spent_epsilon=party.get("spent_epsilon") if charged is None else charged.spent_epsilon,
        remark="left before the end" if party["left"] else "",
    )
