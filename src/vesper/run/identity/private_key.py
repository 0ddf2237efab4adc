"""Private keys on disk: ECDSA on P-256, for this user's eyes only, never overwritten.

A key that others can read proves nothing any more, so it is refused when it is read.
"""

import os
import stat
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from vesper.errors import InputError

PrivateKey = ec.EllipticCurvePrivateKey

LARGEST_FILE = 1 << 16
"""No key, request or certificate of ours comes near it."""


def make_key(path: Path) -> PrivateKey:
    """Make a key and write it to a new file that only this user can read.

    Raises:
        InputError: the file is there already, or cannot be written.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_new(path, pem, mode=0o600)
    return key


def read_key_bytes(path: Path) -> bytes:
    """Read the file of a key, as it is handed to TLS.

    Raises:
        InputError: it cannot be read, or others than its owner could.
    """
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read(LARGEST_FILE)
    except OSError as error:
        raise InputError(
            f"{path}: the private key cannot be read ({error.strerror}); `vesper cert request` "
            f"makes one"
        ) from None
    if mode & 0o077:
        raise InputError(
            f"{path}: a private key that others can read (mode {mode:04o}) proves nothing; if "
            f"nobody has read it `chmod 600` it, else make a new one with `vesper cert request`"
        )
    return content


def read_key(path: Path) -> PrivateKey:
    """Read a key.

    Raises:
        InputError: as `read_key_bytes`, or it is no key of the kind we make.
    """
    content = read_key_bytes(path)
    try:
        key = load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InputError(
            f"{path}: expected a private key (PEM, without a password), found something else"
        ) from None
    if not (isinstance(key, PrivateKey) and isinstance(key.curve, ec.SECP256R1)):
        raise InputError(
            f"{path}: expected an ECDSA key on P-256, found another kind; `vesper cert request` "
            f"makes one"
        )
    return key


def write_new(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file that is not there yet, on disk when this returns.

    Raises:
        InputError: something is there, or the folder cannot be written.
    """
    if os.path.lexists(path):
        raise InputError(f"{path}: is there already and is not overwritten; name another")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); name another") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written ({error.strerror}); make room") from None
