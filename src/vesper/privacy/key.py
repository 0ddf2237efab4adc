"""The secret under which graphs are named in a ledger.

It lies beside the ledger (`LEDGER.key`, owner rights only), so that a ledger can be shown to an
auditor without it. The ledger's first entry holds a digest of the key: a key that is lost or
exchanged would give a known graph a new name, and with it a fresh budget, so it is refused.
"""

import hashlib
import os
import secrets
from pathlib import Path

from vesper.errors import InputError
from vesper.privacy.ledger import Ledger

KEY_BYTES = 32


def key_of(ledger: Ledger) -> bytes:
    """Give the key of a ledger; the first call on a new ledger makes it."""
    path = key_path(ledger)
    with ledger.transaction():
        first = next(iter(ledger.entries()), None)
        if first is None:
            if not path.exists():
                _write(path, secrets.token_bytes(KEY_BYTES))
            facts = {"kind": "key", "check": _check(_read(path))}
            ledger.append(graph="", run="", facts=facts, cost=0, who=b"")
            return _read(path)
    key = _read(path)
    if first.facts.get("check") != _check(key):
        raise InputError(
            f"{path}: this is not the key that {ledger.path.name} was started with; restore that "
            f"one, another would give every graph a fresh budget"
        )
    return key


def key_path(ledger: Ledger) -> Path:
    """Where the key lies."""
    return ledger.path.with_name(ledger.path.name + ".key")


def _check(key: bytes) -> str:
    return hashlib.sha256(b"vesper ledger key" + key).hexdigest()


def _read(path: Path) -> bytes:
    try:
        key = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: the key of the ledger cannot be read ({error.strerror}); restore it, a new "
            f"one would give every graph a fresh budget"
        ) from None
    if len(key) != KEY_BYTES:
        raise InputError(f"{path}: expected a key of {KEY_BYTES} bytes, found {len(key)}")
    return key


def _write(path: Path, key: bytes) -> None:
    """Put the key in place whole, on disk, readable by its owner only."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
