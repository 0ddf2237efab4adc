"""The secret key of the noise of one release: on disk before anything is drawn from it.

    no file   -->   key written and synced   -->   linked to its name   -->   folder synced

A file of that name is complete, and is never replaced: of two processes that make a key at the same
time, both use that of the first. After a crash at any point, either there is no key and nothing was
drawn, or the key is there and every attempt draws the same.
"""

import os
import secrets
from pathlib import Path

from vesper.errors import VesperError
from vesper.files import partial_folder
from vesper.mechanism.noise.noise_source import KEY_BYTES

PARTIAL = "partial-"
"""Prefix of folders in which a file is written before it gets its name."""


def durable_key(path: Path) -> bytes:
    """Return the key in a file, made by whichever attempt came first.

    Raises:
        VesperError: it cannot be stored or read; nothing may be drawn.
    """
    try:
        if not path.exists():
            _make(path)
        key = path.read_bytes()
        sync_folder(path.parent)  # also if the process that made it died before it could do so
    except OSError as error:
        raise VesperError(
            f"{path}: the key of a release cannot be stored or read ({error.strerror}); the "
            f"release was not drawn. Correct that, then continue with --resume, at no further cost"
        ) from None
    if len(key) != KEY_BYTES:
        raise VesperError(
            f"{path}: expected the {KEY_BYTES} bytes of a key, found {len(key)}; noise is never "
            f"drawn twice for one charge. Restore the file, or start a new run"
        )
    return key


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder, and the folder itself, survive a loss of power."""
    for each in (folder, folder.parent):
        handle = os.open(each, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _make(path: Path) -> None:
    """Write a fresh key, readable by this user only, unless another process is faster."""
    with partial_folder(path.parent, PARTIAL) as partial:
        handle = os.open(partial / "key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(partial / "key", path)
        except FileExistsError:
            return
