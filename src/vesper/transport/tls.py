"""Who this side is and whom it trusts: the files of mutual TLS, read and checked."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from vesper.errors import InputError


@dataclass(frozen=True)
class Identity:
    """PEM texts: own certificate and key, and the authority that both sides trust."""

    certificate: bytes
    key: bytes
    authority: bytes


def read_identity(*, certificate: Path, key: Path, authority: Path) -> Identity:
    """Read the three files.

    Raises:
        InputError: a file is missing or no PEM, or the key can be read by others.
    """
    identity = Identity(_read(certificate), _read(key), _read(authority))
    if os.name == "posix" and stat.S_IMODE(key.stat().st_mode) & 0o077:
        raise InputError(f"{key}: expected a key that only you can read; run `chmod 600 {key}`")
    return identity


def _read(path: Path) -> bytes:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if b"-----BEGIN " not in text:
        raise InputError(f"{path}: expected a PEM file, found something else")
    return text
