"""Signed statement of what a file of released features cost, which a machine can check.

    FILE.parquet           released features
    FILE.statement.json    epsilon, delta, releases, digest of the file, ... signed

It names neither the graph nor anything else in the ledger: no sequence number, no head, no total.
It is about one run alone, by whose name an auditor at the data party finds the charges.

Signed facts are one JSON object whose `signature` covers everything else in it:

    signed bytes = CONTEXT + canonical JSON of all but the signature      (sorted keys, no spaces)
    signature    = Ed25519(signing key, signed bytes),   public key inside the signed part

The signature shows that whoever holds the secret key wrote the facts. The file cannot show whose
key that is: the public key must be obtained over another channel.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from vesper.errors import InputError, VesperError
from vesper.privacy.events import GAUSSIAN_KIND, SUM
from vesper.privacy.ledger.reader import Entry, LedgerReader
from vesper.privacy.ledger.run_balance import RunBalance
from vesper.version import VERSION

CONTEXT = b"vesper signed statement 1\n"
"""Prefix of signed bytes, so that nothing else signed with the key can pass for a statement."""

KEY_DIGITS, SIGNATURE_DIGITS = 64, 128


def sign_facts(facts: Mapping[str, Any], *, signing_key: bytes) -> str:
    """Add public key and signature to the facts; return the JSON text.

    Raises:
        ValueError: a number is infinite or NaN, which JSON cannot represent.
    """
    key = Ed25519PrivateKey.from_private_bytes(signing_key)
    whole = {**facts, "public_key": key.public_key().public_bytes_raw().hex()}
    signature = key.sign(_covered(whole)).hex()
    return json.dumps({**whole, "signature": signature}, indent=2, allow_nan=False) + "\n"


def verify_facts(text: str, *, public_key: str | None = None) -> dict[str, Any]:
    """Verify a signed text and return its facts without the signature.

    Args:
        text: output of `sign_facts`.
        public_key: the key that must have signed, as noted elsewhere. None uses the key in the
            text, which only proves that nobody without its secret has changed anything.

    Raises:
        InputError: the text is not a signed statement, or the public key is not a key.
        VesperError: the text was changed, or was signed with another key.
    """
    facts = _parsed(text)
    signature = _bytes(facts.pop("signature", None), SIGNATURE_DIGITS, "signature")
    signer = _bytes(facts.get("public_key"), KEY_DIGITS, "public_key")
    if public_key is not None and _bytes(public_key, KEY_DIGITS, "--public-key") != signer:
        raise VesperError(
            f"the statement is signed with another key: expected {public_key.lower()}, found "
            f"{signer.hex()}; do not trust the file"
        )
    try:
        Ed25519PublicKey.from_public_bytes(signer).verify(signature, _covered(facts))
    except (InvalidSignature, ValueError):
        raise VesperError(
            "the signature does not match the statement: it was changed after it was signed; ask "
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
        raise InputError("expected a signed statement, found JSON that is not an object")
    return facts


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a dict; refuse repeated keys, of which two readers might pick different ones."""
    facts = dict(pairs)
    if len(facts) != len(pairs):
        raise ValueError("a key occurs twice")
    return facts


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON")


def _bytes(value: object, digits: int, name: str) -> bytes:
    if isinstance(value, str) and len(value) == digits:
        try:
            return bytes.fromhex(value)
        except ValueError:
            pass
    raise InputError(f"{name}: expected {digits} hexadecimal digits, found {value!r}")


KIND = "vesper release statement"
FORMAT = 2

CLAIMS = {
    SUM: ("R-SUM", "R-GRID"),
    "attention": ("S-ATT", "R-GRID"),
    "maximum": ("S-MAX", "R-GRID"),
    "clamped gcn": ("S-GCN-CLAMP", "R-GRID"),
}
"""Claims that prove the cost of a Gaussian release, by aggregation; their composition rests on
`COMPOSED_BY`."""

COMPOSED_BY = ("L-FILTER", "G-CONVERT", "POST")

NOT_COVERED = (
    "features, and whatever follows from them and from labels: only edges are protected",
    "many edges together: protection weakens with their number",
    "other releases of the same graph: its owner adds them up in the ledger",
    "the labels of training nodes, if they were shared with the data party",
    "when and for how long the data party computed",
)
SIMULATED = "noise came from a seed: whoever knows it can remove the noise; nothing is protected"


def statement_path(file: Path) -> Path:
    """Path of the statement of a file: FILE.parquet -> FILE.statement.json."""
    return file.with_suffix(".statement.json")


@dataclass(frozen=True)
class ReleasedFile:
    """What a statement says about its file.

    Args:
        name: name of the file.
        sha256: digest of the file.
        columns: meaning of the columns, by name.
    """

    name: str
    sha256: str
    columns: Mapping[str, str]


def make_statement(
    *,
    balance: RunBalance,
    epsilon: float,
    ledger: LedgerReader,
    simulated: bool,
    run: str,
    file: ReleasedFile,
    now: float,
) -> str:
    """Write and sign a statement.

    Args:
        balance: of the run that made the file, after its charges.
        epsilon: what it was allowed.
        ledger: provides the signing key.
        simulated: whether noise came from a seed.
        run: name of the run in the ledger.
        file: what to state about the file.
        now: seconds since the epoch, for the time.

    Raises:
        ValueError: no claim covers a charged event.
    """
    facts: dict[str, Any] = {
        "kind": KIND,
        "format": FORMAT,
        "file": file.name,
        "sha256": file.sha256,
        "simulated": simulated,
        "epsilon": epsilon,
        "delta": balance.delta,
        **balance.relation.facts,
        # spent is rounded up, and the filter never admits more than the budget
        "spent_epsilon": min(balance.spent_epsilon, epsilon),
        "releases": [_release(entry) for entry in balance.charges],
        "composed_by": list(COMPOSED_BY),
        "not_covered": [*([SIMULATED] if simulated else []), *NOT_COVERED],
        "columns": dict(file.columns),
        "nodes": balance.num_nodes,
        "run": run,
        "version": VERSION,
        "time": datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
    }
    return sign_facts(facts, signing_key=ledger.keys.signing)


def verify_file(file: Path, *, public_key: str | None = None) -> dict[str, Any]:
    """Check signature and digest of a released file; return the facts of its statement.

    Raises:
        InputError: the file or its statement cannot be read.
        VesperError: one of them was changed, or was signed with another key.
    """
    path = statement_path(file)
    try:
        text, digest = path.read_text(encoding="utf-8"), sha256_of(file)
    except UnicodeDecodeError:
        raise InputError(f"{path}: expected a signed statement in JSON, found none") from None
    except OSError as error:
        raise InputError(
            f"{error.filename}: cannot be read ({error.strerror}); keep a released file and its "
            f"statement in the same folder"
        ) from None
    try:
        facts = verify_facts(text, public_key=public_key)
    except VesperError as error:
        raise type(error)(f"{path}: {error}") from None
    if (facts.get("kind"), facts.get("format")) != (KIND, FORMAT):
        found = json.dumps([facts.get("kind"), facts.get("format")])
        raise InputError(f"{path}: expected a {KIND} of format {FORMAT}, found {found}")
    if facts.get("sha256") != digest:
        raise VesperError(f"{file}: is not the file that {path.name} describes; it was changed")
    return facts


def sha256_of(file: Path) -> str:
    """Digest of a file's bytes, in hexadecimal digits."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _release(entry: Entry) -> dict[str, Any]:
    kind, aggregation = entry.facts["kind"], entry.facts.get("aggregation", SUM)
    if kind != GAUSSIAN_KIND or aggregation not in CLAIMS:
        raise ValueError(f"no claim covers a {kind} of a {aggregation}")
    return {**entry.facts, "claims": list(CLAIMS[aggregation])}
