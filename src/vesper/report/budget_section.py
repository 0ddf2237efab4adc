"""Charges of a run, read from its ledger; with several data parties, who is protected from whom.

| account | protected from |
| --- | --- |
| edges of a data party | the label party and all other data parties together |
| edges of the label party's own graph | all data parties together |
| labels, where they are protected | all data parties together |
"""

import math
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from vesper.privacy.accounting.participation import mu_for
from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.privacy.ledger.reader import Entry, LedgerReader
from vesper.privacy.ledger.run_balance import balance_of_run
from vesper.report.html import lines_table, number


@dataclass(frozen=True, kw_only=True)
class Charge:
    """One charge of the run."""

    what: str
    time: float | None = None
    """When it was charged, by the data party's clock."""


@dataclass(frozen=True, kw_only=True)
class RunCharges:
    """What one run was charged; pages show nothing else of a ledger, as others read them."""

    charges: tuple[Charge, ...]
    spent_epsilon: float
    planned_epsilon: float | None
    """What the run had reserved; None where nothing is certified."""
    best_guess: float
    """Largest probability with which a guess about one edge, with even odds before, can be right
    after everything that this run released."""


def read_run_charges(path: Path, *, run: str) -> RunCharges | None:
    """Read the charges of a run from a ledger file; None if there are none or no such file."""
    if not path.is_file():
        return None
    with closing(open_to_read(path)) as ledger:
        return run_charges_of(ledger, run=run)


def run_charges_of(ledger: LedgerReader, *, run: str) -> RunCharges | None:
    """Find the charges of a run; None if there are none."""
    balance = balance_of_run(ledger, run)
    if not balance.charges:
        return None
    mu = mu_for(spent=balance.spent_mu_squared, rows=balance.relation.rows)
    return RunCharges(
        charges=tuple(Charge(what=_describe_charge(e), time=e.time) for e in balance.charges),
        spent_epsilon=balance.spent_epsilon,
        planned_epsilon=balance.planned_epsilon,
        best_guess=best_guess_with_counts(pure=balance.pure, mu=mu),
    )


def best_guess_gaussian(*, mu: float) -> float:
    """Phi(mu / 2): how often the best test of N(0, 1) against N(mu, 1) is right, at even odds.

    >>> round(best_guess_gaussian(mu=1.0), 4)
    0.6915
    """
    return 0.5 * math.erfc(-mu / math.sqrt(8))


def best_guess_with_counts(*, pure: float, mu: float) -> float:
    """1 - (1 - tanh(pure / 2)) (1 - Phi(mu / 2)): the same, after counts of total epsilon `pure`.

    A guess at even odds is right with probability (1 + t) / 2, where t is the total variation
    between the two worlds. Counts have t <= tanh(pure / 2), and the releases after them have
    t <= 2 Phi(mu/2) - 1 whatever the counts were. Coupling first the counts and then the releases
    shows that both together are equal in the two worlds with probability at least
    (1 - t_1) (1 - t_2).

    >>> round(best_guess_with_counts(pure=0.1, mu=1.0), 4)
    0.7069
    >>> round(best_guess_with_counts(pure=1.0, mu=0.0), 4)
    0.7311
    """
    return 1 - (1 - math.tanh(pure / 2)) * (1 - best_guess_gaussian(mu=mu))


def best_guess(*, epsilon: float, delta: float) -> float:
    """(e^epsilon + delta) / (e^epsilon + 1): what (epsilon, delta) alone allows for such a guess.

    >>> round(best_guess(epsilon=1.0, delta=0.0), 4)
    0.7311
    """
    odds_against = math.exp(-epsilon)
    return (1 + delta * odds_against) / (1 + odds_against)


def _describe_charge(entry: Entry) -> str:
    facts = {key: value for key, value in entry.facts.items() if key not in ("kind", "number")}
    numbers = ", ".join(
        f"{key.replace('_', ' ')} {value:.4g}"
        for key, value in facts.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    )
    kind = str(entry.facts["kind"])
    if "aggregation" in facts:
        kind += f" of {facts['aggregation']}"
    return f"{kind}: {numbers}" if numbers else kind


NOTE = (
    "Accounts are separate: spending from one does not affect another, and each guarantee holds "
    "even if all other parties combine what they see. An edge that two parties both hold is in "
    "both accounts: what can be learned about it adds up."
)


@dataclass(frozen=True, kw_only=True)
class AccountLine:
    """One account; None stands for what this side does not know."""

    protected: str
    against: str
    epsilon: float | None
    delta: float | None
    releases: int | None = None
    spent_epsilon: float | None = None
    remark: str = ""


def account_lines(folder: Path, result: Mapping[str, Any], *, run: str) -> tuple[AccountLine, ...]:
    """List the accounts of a run; empty if there is only one data party.

    Args:
        folder: holds `result.json`, and the ledgers in the case of a simulation.
        result: the content of `result.json`.
        run: the name of the run in those ledgers.
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
    """Render a table with one line per account, as HTML; empty if there is one data party."""
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
    run_charges = read_run_charges(folder / f"ledger-{name}.sqlite", run=run)
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
        spent_epsilon=party.get("spent_epsilon")
        if run_charges is None
        else run_charges.spent_epsilon,
        remark=_remark(party),
    )


def _remark(party: Mapping[str, Any]) -> str:
    remarks = ["simulated noise"] if party["privacy"].get("simulated") else []
    return ", ".join([*remarks, *(["left before the end"] if party["left"] else [])])
