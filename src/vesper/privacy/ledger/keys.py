"""The secret of a ledger, and the keys made from it.

    chain key        = HKDF(secret, "chain")          under which entries are chained
    fingerprint key  = HKDF(secret, "fingerprint")    under which graphs are named
    response key     = HKDF(secret, "response")       from which responses to labels are drawn
    signing key      = HKDF(secret, "signing")        with which statements are signed (Ed25519)
    check            = HKDF(secret, "check")          which the ledger's first entry holds

The secret lies beside the ledger (`LEDGER.key`, owner rights only), so that a ledger can be shown
without it. Who has no secret can neither forge an entry nor check a guess of the graph. A secret
that is lost or exchanged would give a known graph a new name, and with it a fresh budget: refused.
"""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from vesper.errors import InputError

KEY_BYTES = 32


@dataclass(frozen=True)
class Keys:
    """What is derived from the secret; `check` alone may be shown."""

    chain: bytes
    fingerprint: bytes
    response: bytes
    signing: bytes
    check: str


def key_path(ledger: Path) -> Path:
    """Where the secret of the ledger at this path lies."""
    return ledger.with_name(ledger.name + ".key")


def derive_keys(secret: bytes) -> Keys:
    """Derive the keys; none tells anything about another (RFC 5869)."""

    def key_for(purpose: bytes) -> bytes:
        derivation = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=purpose)
        return derivation.derive(secret)

    return Keys(
        chain=key_for(b"vesper ledger chain"),
        fingerprint=key_for(b"vesper graph fingerprint"),
        response=key_for(b"vesper label response"),
        signing=key_for(b"vesper statement signature"),
        check=key_for(b"vesper key check").hex(),
    )


def read_keys(path: Path) -> Keys:
    """Read the secret.

    Raises:
        InputError: it is not there, cannot be read, or is no secret.
    """
    try:
        secret = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: the key of the ledger cannot be read ({error.strerror}); restore it, a new "
            f"one would give every graph a fresh budget"
        ) from None
    if len(secret) != KEY_BYTES:
        raise InputError(f"{path}: expected a key of {KEY_BYTES} bytes, found {len(secret)}")
    return derive_keys(secret)


def make_keys(path: Path) -> Keys:
    """Read the secret of a new ledger; if there is none yet, put one in place, whole and on disk.

    One may be there: a crash between this and the first entry leaves it.
    """
    if not path.exists():
        try:
            _write(path, secrets.token_bytes(KEY_BYTES))
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    return read_keys(path)


def _write(path: Path, secret: bytes) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secret)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
    folder = os.open(path.parent, os.O_RDONLY)  # or the name may be gone after a power cut
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
