"""What a file of released features cost, in words a machine can check.

    FILE.parquet           released features
    FILE.statement.json    epsilon, delta, releases, digest of the file, ... signed

It names no graph: the fingerprint stays in the ledger. The head of the ledger lets an auditor at
the data party find the charges (`vesper budget verify --head`).

Signed facts: one JSON object whose `signature` covers everything else in it.

    signed bytes = CONTEXT + canonical JSON of all but the signature      (sorted keys, no spaces)
    signature    = Ed25519(signing key, signed bytes),   public key inside the signed part

The signature shows that whoever holds the secret key wrote the facts. Whose key that is the file
cannot show: the public key must have come by another way.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from vesper.errors import InputError, VesperError
from vesper.privacy.events import GAUSSIAN_KIND, SUM
from vesper.privacy.ledger.balance import Balance
from vesper.privacy.ledger.reader import Entry, LedgerReader, format_head
from vesper.version import VERSION

CONTEXT = b"vesper signed statement 1\n"
"""So that nothing else that is ever signed with the key can pass for a statement."""

KEY_DIGITS, SIGNATURE_DIGITS = 64, 128


def sign_facts(facts: Mapping[str, Any], *, signing_key: bytes) -> str:
    """Add public key and signature to the facts; give the JSON text.

    Raises:
        ValueError: a number is infinite or NaN, which JSON does not have.
    """
    key = Ed25519PrivateKey.from_private_bytes(signing_key)
    whole = {**facts, "public_key": key.public_key().public_bytes_raw().hex()}
    signature = key.sign(_covered(whole)).hex()
    return json.dumps({**whole, "signature": signature}, indent=2, allow_nan=False) + "\n"


def verify_facts(text: str, *, public_key: str | None = None) -> dict[str, Any]:
    """Give the facts of a signed text, without its signature.

    Args:
        text: what `sign_facts` made.
        public_key: the key that must have signed, as noted elsewhere; None: the one in the text,
            which then proves only that nothing was changed by those who lack its secret.

    Raises:
        InputError: the text is no signed statement, or the public key is no key.
        VesperError: it was changed, or another key has signed it.
    """
    facts = _parsed(text)
    signature = _bytes(facts.pop("signature", None), SIGNATURE_DIGITS, "signature")
    held = _bytes(facts.get("public_key"), KEY_DIGITS, "public_key")
    if public_key is not None and _bytes(public_key, KEY_DIGITS, "--public-key") != held:
        raise VesperError(
            f"the statement is signed with another key: expected {public_key.lower()}, found "
            f"{held.hex()}; do not trust the file"
        )
    try:
        Ed25519PublicKey.from_public_bytes(held).verify(signature, _covered(facts))
    except (InvalidSignature, ValueError):
        raise VesperError(
            "the signature does not fit the statement: it was changed after it was signed; ask "
            "the data party for it again"
        ) from None
    return facts


def _covered(facts: Mapping[str, Any]) -> bytes:
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return CONTEXT + text.encode()


def _parsed(text: str) -> dict[str, Any]:
    try:
        facts = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"expected a signed statement in JSON, found none ({error})") from None
    if not isinstance(facts, dict):
        raise InputError("expected a signed statement, found JSON that is no object")
    return facts


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two readers might take different ones of two equal keys: refuse them."""
    facts = dict(pairs)
    if len(facts) != len(pairs):
        raise ValueError("a key stands in it twice")
    return facts


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _bytes(value: object, digits: int, name: str) -> bytes:
    if isinstance(value, str) and len(value) == digits:
        try:
            return bytes.fromhex(value)
        except ValueError:
            pass
    raise InputError(f"{name}: expected {digits} hexadecimal digits, found {value!r}")


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
    charge_entries: Iterable[Entry],
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
        charge_entries: the entries of the ledger that this file rests on.
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
        "releases": [_release(entry) for entry in charge_entries],
        "composed_by": list(COMPOSED_BY),
        "not_covered": [*([SIMULATED] if simulated else []), *NOT_COVERED],
        "columns": dict(columns),
        "nodes": len(balance.spent),
        "run": run,
        "ledger_head": format_head(ledger.head()),
        "version": VERSION,
        "time": datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
    }
    return sign_facts(facts, signing_key=ledger.keys.signing)


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
        facts = verify_facts(text, public_key=public_key)
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
