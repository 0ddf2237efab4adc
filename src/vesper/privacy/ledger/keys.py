"""The secret of a ledger, and the keys derived from it.

    chain key        = HKDF(secret, "chain")          under which entries are chained
    fingerprint key  = HKDF(secret, "fingerprint")    under which versions of graphs are compared
    response key     = HKDF(secret, "response")       from which responses to labels are drawn
    signing key      = HKDF(secret, "signing")        with which statements are signed (Ed25519)
    check            = HKDF(secret, "check")          which the ledger's first entry holds

The secret is next to the ledger (`LEDGER.key`, readable by its owner only), so that a ledger can be
shown without it. Without the secret nobody can forge an entry or check a guess of the graph. A
ledger whose secret was lost or replaced is refused, because nobody could verify it.
"""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from vesper.errors import InputError
from vesper.files import replace_file

KEY_BYTES = 32


@dataclass(frozen=True)
class Keys:
    """Keys derived from the secret; only `check` may be shown."""

    chain: bytes
    fingerprint: bytes
    response: bytes
    signing: bytes
    check: str


def key_path(ledger: Path) -> Path:
    """Path of the secret that belongs to the ledger at this path."""
    return ledger.with_name(ledger.name + ".key")


def derive_keys(secret: bytes) -> Keys:
    """Derive the keys; none reveals anything about another (RFC 5869)."""

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
        InputError: it is missing, cannot be read, or is not a secret.
    """
    try:
        secret = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: the key of the ledger cannot be read ({error.strerror}); restore it, "
            f"because nobody could verify the ledger with a new key"
        ) from None
    if len(secret) != KEY_BYTES:
        raise InputError(f"{path}: expected a key of {KEY_BYTES} bytes, found {len(secret)}")
    return derive_keys(secret)


def make_keys(path: Path) -> Keys:
    """Create the secret of a new ledger, atomically and synced to disk, unless it exists.

    It may exist already, after a crash before the first entry was written.
    """
    if not path.exists():
        try:
            _write(path, secrets.token_bytes(KEY_BYTES))
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    return read_keys(path)


def _write(path: Path, secret: bytes) -> None:
    replace_file(path, secret)
    folder = os.open(path.parent, os.O_RDONLY)  # or the name may be lost in a power failure
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
