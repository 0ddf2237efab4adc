"""`vesper budget`: what a ledger says, and whether it was tampered with."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from vesper.cli.show import print_json, print_table
from vesper.errors import VesperError

app = typer.Typer(help="Read and verify a privacy ledger.", no_args_is_help=True)

LedgerPath = Annotated[Path, typer.Argument(metavar="LEDGER", help="The data party's ledger file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def show(
    ledger: LedgerPath,
    noise_std: Annotated[
        float | None, typer.Option(help="How many releases of this noise fit; default: the last.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print spent, left, and how many more releases fit, for each graph."""
    from vesper.privacy.account import accounts
    from vesper.privacy.events import UNIT, GaussianRelease
    from vesper.privacy.ledger import Ledger

    opened = Ledger(ledger, clock=time.time, must_exist=True)
    graphs: list[dict[str, Any]] = []
    for account in accounts(opened):
        noises = [
            entry.facts["noise_std"]
            for entry in opened.entries()
            if entry.graph == account.graph and "noise_std" in entry.facts
        ]
        noise = noise_std or (noises[-1] if noises else None)
        budget = account.budget
        spent = account.spent_epsilon()
        graphs.append(
            {
                "graph": account.graph,
                "nodes": len(account.spent),
                "epsilon": budget.epsilon if budget else None,
                "delta": budget.delta if budget else None,
                "spent_epsilon": spent,
                "left_epsilon": max(budget.epsilon - spent, 0.0) if budget else None,
                "spent_mu_squared": int(account.spent.max()) / UNIT,
                "left_mu_squared": (account.cap - int(account.spent.max())) / UNIT
                if budget
                else None,
                "releases": sum(e.cost > 0 for e in opened.entries() if e.graph == account.graph),
                "noise_std": noise,
                "releases_left": account.fits(GaussianRelease(noise_std=noise))
                if noise and budget
                else None,
            }
        )
    entries, digest = opened.head()
    if as_json:
        print_json({"entries": entries, "head": digest.hex(), "graphs": graphs})
        return
    print_table(
        f"{ledger}: {entries} entries, head {digest.hex()[:16]}",
        ["graph", "epsilon", "spent", "left", "delta", "releases", "more that fit"],
        [
            [
                row["graph"][:12],
                _number(row["epsilon"]),
                _number(row["spent_epsilon"]),
                _number(row["left_epsilon"]),
                _number(row["delta"]),
                str(row["releases"]),
                "-" if row["releases_left"] is None else f"{row['releases_left']:,}",
            ]
            for row in graphs
        ],
    )


@app.command()
def verify(
    ledger: LedgerPath,
    head: Annotated[
        str | None, typer.Option(help="Head noted earlier; the ledger must contain it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute the hash chain; tampering ends with exit code 1."""
    from vesper.privacy.ledger import Ledger

    opened = Ledger(ledger, clock=time.time, must_exist=True)
    broken = opened.verify()
    known = head is None or opened.contains(head)
    behind = opened.behind_its_note()
    entries, digest = opened.head()
    if as_json:
        print_json(
            {
                "valid": broken is None and known and not behind,
                "entries": entries,
                "head": digest.hex(),
                "first_bad_entry": broken,
                "contains_given_head": None if head is None else known,
            }
        )
    if broken is not None:
        raise VesperError(
            f"{ledger}: entry {broken} does not fit the chain; the ledger was changed from there on"
        )
    if behind:
        raise VesperError(behind)
    if not known:
        raise VesperError(f"{ledger}: the chain holds, but the given head is not in it")
    if not as_json:
        typer.echo(f"{ledger}: {entries} entries, the chain holds; head {digest.hex()}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
