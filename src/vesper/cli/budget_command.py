"""`vesper budget show|verify`: the contents of a ledger, and whether it was tampered with."""

import math
from collections.abc import Iterable
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vesper.cli.budget_decisions import LedgerPath, accept, return_reservation, set_budget
from vesper.cli.console import print_json, print_line, print_table
from vesper.errors import InputError, VesperError

if TYPE_CHECKING:
    from vesper.privacy.ledger.balance import Balance
    from vesper.privacy.ledger.reader import Entry

app = typer.Typer(help="Show, verify and manage a privacy ledger.", no_args_is_help=True)

app.command("set")(set_budget)
app.command("return")(return_reservation)
app.command("accept")(accept)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

HEAD_DIGITS = 16


@app.command()
def show(
    ledger: LedgerPath,
    noise_std: Annotated[
        float | None,
        typer.Option(help="Noise std for counting further releases; default: that of the last."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what each graph has spent and has left, and all charges."""
    from vesper.privacy.ledger.account_reader import accounts
    from vesper.privacy.ledger.ledger_file import open_to_read
    from vesper.privacy.ledger.overlap_report import describe_overlaps
    from vesper.privacy.ledger.reader import format_head

    with closing(open_to_read(ledger)) as opened:
        entries = list(opened.entries())
        graphs = [
            _account_facts(balance, entries, noise_std)
            | {"overlaps": describe_overlaps(opened, balance.graph)}
            for balance in accounts(opened)
        ]
        count, digest = opened.head()
    charges = _grouped_charges(entries)
    if as_json:
        head = format_head((count, digest))
        print_json({"entries": count, "head": head, "graphs": graphs, "charges": charges})
        return
    columns = [
        "graph",
        "epsilon",
        "spent",
        "reserved",
        "left",
        "delta",
        "protects",
        "releases",
        "more fit",
    ]
    print_table(f"{ledger}: {count} entries", columns, [_cells(row) for row in graphs])
    for row in graphs:
        if row["unprotected_by"] is not None:
            print_line(
                f"graph {row['graph']}: edges were used WITHOUT A GUARANTEE by run "
                f"{row['unprotected_by']}; no epsilon holds for it"
            )
        if row["simulated"]:
            print_line(f"graph {row['graph']}: SIMULATED noise, not private")
        if row["sum"]:
            print_line(f"graph {row['graph']}: {row['sum']}")
        for run in row["open_reservations"]:
            print_line(f"graph {row['graph']}: reserved for run {run}")
        for text in row["overlaps"]:
            print_line(text)
    if charges:
        names = ["run", "what", "charges", "nodes", "first_entry"]
        rows = [[str(charge[name]) for name in names] for charge in charges]
        print_table(
            "charged: each is one release",
            ["run", "what", "charges", "nodes each", "first entry"],
            rows,
        )
    print_line(f"head {count}:{digest.hex()[:HEAD_DIGITS]} (keep a note of it elsewhere)")


@app.command()
def verify(
    ledger: LedgerPath,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="SEQUENCE:DIGEST", help="Head noted earlier, which the ledger must contain."
        ),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="The ledger's key; default: LEDGER.key next to it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify that a ledger was not changed.

    Recomputes its chain with the ledger's key; exits with 1 after tampering.
    """
    from vesper.privacy.ledger.keys import key_path
    from vesper.privacy.ledger.ledger_file import open_to_read
    from vesper.privacy.ledger.reader import format_head, parse_head

    noted = None if head is None else parse_head(head)
    with closing(open_to_read(ledger, key=key)) as opened:
        if not (key or key_path(ledger)).is_file():
            raise InputError(
                f"{ledger}: expected its key at {key or key_path(ledger)}, found no file; "
                f"changes cannot be detected without it, give its path with --key"
            )
        broken = opened.verify()
        contained = noted is None or opened.contains(*noted)
        behind = opened.behind_head_note()
        count, digest = opened.head()
    if as_json:
        print_json(
            {
                "valid": broken is None and contained and not behind,
                "entries": count,
                "head": format_head((count, digest)),
                "first_bad_entry": broken,
                "contains_given_head": None if noted is None else contained,
                "older_than_head_note": behind is not None,
            }
        )
    if broken is not None:
        other_key = ", or this is not its key" if broken == 1 else ""
        raise VesperError(
            f"{ledger}: entry {broken} does not fit the chain; the ledger was changed from this "
            f"entry on{other_key}"
        )
    if behind:
        raise VesperError(behind)
    if not contained:
        raise VesperError(
            f"{ledger}: the chain is intact, but does not contain the given head; this is an older "
            f"copy or another ledger"
        )
    if not as_json:
        print_line(
            f"{ledger}: {count} entries, the chain is intact; head {format_head((count, digest))}"
        )


def _account_facts(
    balance: "Balance", entries: Iterable["Entry"], noise_std: float | None
) -> dict[str, Any]:
    """Return what one graph has spent and what is left."""
    from vesper.privacy.events import GaussianRelease

    if noise_std is None:
        for entry in entries:
            if entry.graph == balance.graph:
                noise_std = entry.facts.get("noise_std", noise_std)
    event = None if noise_std is None else GaussianRelease(noise_std=noise_std)
    budget = balance.budget
    return {
        "graph": balance.graph,
        "nodes": len(balance.spent),
        **balance.relation.facts,
        "epsilon": budget.epsilon if budget else None,
        "delta": balance.delta,
        "spent_epsilon": balance.spent_epsilon(),
        "reserved_epsilon": balance.reserved_epsilon(),
        "left_epsilon": balance.left_epsilon(),
        "open_reservations": list(balance.reservations),
        "simulated": balance.simulated,
        "spent_pure_epsilon": float(balance.pure),
        "spent_mu_squared": balance.spent_mu_squared,
        "left_mu_squared": balance.left_mu_squared,
        "unprotected_by": balance.unprotected,
        "releases": balance.releases,
        "noise_std": noise_std,
        "sum": _describe_sum(balance),
        "releases_left": balance.fits(event) if event and budget else None,
    }


def _describe_sum(balance: "Balance") -> str:
    """Explain how counts, whose epsilons add up, and noisy releases make up what is spent."""
    spent, pure = balance.spent_epsilon(), float(balance.pure)
    if not (0 < pure < spent < math.inf):
        return ""
    return (
        f"epsilon {spent:.4g} spent = {pure:.4g} for counts and {spent - pure:.4g} for everything "
        f"released with Gaussian noise, taken together"
    )


def _grouped_charges(entries: Iterable["Entry"]) -> list[dict[str, Any]]:
    """Return all charges and uses without a guarantee; equal ones share a line."""
    from vesper.privacy.events import UNPROTECTED_KIND
    from vesper.privacy.ledger.receipt import count

    def charge_key(entry: "Entry") -> tuple[str, str, str, int]:
        return entry.graph, entry.run, _describe_charge(entry.facts), count(entry.receivers)

    charged = (e for e in entries if e.cost > 0 or e.facts["kind"] == UNPROTECTED_KIND)
    lines = []
    for (graph, run, what, nodes), group in groupby(charged, key=charge_key):
        same = list(group)
        lines.append(
            {
                "graph": graph,
                "run": run,
                "what": what,
                "nodes": nodes,
                "charges": len(same),
                "first_entry": same[0].sequence,
                "cost": same[0].cost,
                "facts": same[0].facts,
            }
        )
    return lines


def _describe_charge(facts: dict[str, Any]) -> str:
    """Describe a charge in a few words, with all its numbers."""
    if "plan" in facts:
        return f"{facts['kind']}, plan {facts['plan']}"
    numbers = ", ".join(
        f"{name} {value:.6g}" for name, value in facts.items() if isinstance(value, int | float)
    )
    aggregation = f" of {facts['aggregation']}" if "aggregation" in facts else ""
    return f"{facts.get('what', facts['kind'])}{aggregation}, {numbers}"


def _cells(row: dict[str, Any]) -> list[str]:
    names = ("epsilon", "spent_epsilon", "reserved_epsilon", "left_epsilon", "delta")
    numbers = [row[name] for name in names]
    return [
        row["graph"],
        *("-" if value is None else f"{value:.4g}" for value in numbers),
        f"one {row['relation']}",
        str(row["releases"]),
        "-" if row["releases_left"] is None else f"{row['releases_left']:,}",
    ]
