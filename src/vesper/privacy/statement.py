"""What a file of released features cost, in words a machine can check.

    FILE.parquet           released features
    FILE.statement.json    epsilon, delta, releases, digest of the file, ... signed

It names no graph: the fingerprint stays in the ledger. The head of the ledger lets an auditor at
the data party find the charges (`vesper budget verify --head`).
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vesper.errors import InputError, VesperError
from vesper.privacy.balance import Balance
from vesper.privacy.events import GAUSSIAN_KIND, SUM
from vesper.privacy.ledger_reader import Entry, LedgerReader, shown_head
from vesper.privacy.signature import checked, signed
from vesper.version import VERSION

KIND = "vesper release statement"
FORMAT = 1

CLAIMS = {
    SUM: ("R-SUM", "R-GRID"),
    "attention": ("S-ATT", "R-GRID"),
    "maximum": ("S-MAX", "R-GRID"),
    "clamped gcn": ("S-GCN-CLAMP", "R-GRID"),
}
"""What proves the cost of a Gaussian release, by aggregation; the sum over events rests on
`COMPOSED_BY`."""

COMPOSED_BY = ("L-FILTER", "G-CONVERT", "POST")

NOT_COVERED = (
    "features, and what follows from them and from labels: only edges are protected",
    "many edges together: protection decays with their number",
    "other snapshots of the same graph: each has a budget of its own",
    "the labels of training nodes, where these were lent to the data party",
    "the time at which, and how long, the data party computed",
)
SIMULATED = "noise came from a seed: whoever knows it removes the noise; nothing is protected"


def statement_path(file: Path) -> Path:
    """Where the statement of a file lies: FILE.parquet -> FILE.statement.json."""
    return file.with_suffix(".statement.json")


def make_statement(
    *,
    balance: Balance,
    charged: Iterable[Entry],
    ledger: LedgerReader,
    simulated: bool,
    run: str,
    file: str,
    sha256: str,
    columns: Mapping[str, str],
    now: float,
) -> str:
    """Write and sign a statement.

    Args:
        balance: the account of the graph, after the charges.
        charged: the entries of the ledger that this file rests on.
        ledger: signs with its key; its head is noted.
        simulated: whether noise came from a seed.
        run: digest of the settings.
        file: name of the file.
        sha256: digest of the file.
        columns: what the columns mean.
        now: seconds, for the time.

    Raises:
        ValueError: the account has no budget, or an event is charged that no claim is named for.
    """
    if balance.budget is None:
        raise ValueError("expected an account with a budget")
    facts: dict[str, Any] = {
        "kind": KIND,
        "format": FORMAT,
        "file": file,
        "sha256": sha256,
        "simulated": simulated,
        "epsilon": balance.budget.epsilon,
        "delta": balance.budget.delta,
        **balance.relation.facts,
        # spent is rounded up, and the filter never admits more than the budget
        "spent_epsilon": min(balance.spent_epsilon(), balance.budget.epsilon),
        "releases": [_release(entry) for entry in charged],
        "composed_by": list(COMPOSED_BY),
        "not_covered": [*([SIMULATED] if simulated else []), *NOT_COVERED],
        "columns": dict(columns),
        "nodes": len(balance.spent),
        "run": run,
        "ledger_head": shown_head(ledger.head()),
        "version": VERSION,
        "time": datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
    }
    return signed(facts, signing_key=ledger.keys.signing)


def verify_file(file: Path, *, public_key: str | None = None) -> dict[str, Any]:
    """Check signature and digest of a released file; give what its statement says.

    Raises:
        InputError: file or statement cannot be read.
        VesperError: one of them was changed, or another key has signed.
    """
    path = statement_path(file)
    try:
        text, digest = path.read_text(encoding="utf-8"), sha256_of(file)
    except UnicodeDecodeError:
        raise InputError(f"{path}: expected a signed statement in JSON, found none") from None
    except OSError as error:
        raise InputError(
            f"{error.filename}: cannot be read ({error.strerror}); a released file and its "
            f"statement stay side by side"
        ) from None
    try:
        facts = checked(text, public_key=public_key)
    except VesperError as error:
        raise type(error)(f"{path}: {error}") from None
    if (facts.get("kind"), facts.get("format")) != (KIND, FORMAT):
        found = json.dumps([facts.get("kind"), facts.get("format")])
        raise InputError(f"{path}: expected a {KIND} of format {FORMAT}, found {found}")
    if facts.get("sha256") != digest:
        raise VesperError(f"{file}: is not the file that {path.name} speaks of; it was changed")
    return facts


def sha256_of(file: Path) -> str:
    """Digest of a file's bytes, in hexadecimal digits."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _release(entry: Entry) -> dict[str, Any]:
    kind, made = entry.facts["kind"], entry.facts.get("aggregation", SUM)
    if kind != GAUSSIAN_KIND or made not in CLAIMS:
        raise ValueError(f"no claim is named for a {kind} of a {made}")
    return {**entry.facts, "claims": list(CLAIMS[made]), "ledger_entry": entry.sequence}
