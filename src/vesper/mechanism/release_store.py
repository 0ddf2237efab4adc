"""Releases on disk: drawn once, read ever after.

    file name = number of the release, digest of its arrays

    ledger:  charged --> (noise is drawn) --> stored, with the digest of the file

A release is charged, drawn and stored, and only then used; one that was stored before is read
instead of drawn. A file is complete and on disk before `put` returns. Only files whose digest the
ledger records count; others are left over from a process that died before it could record them.
Such a process has sent nothing, so it draws again under the same charge (claim L-FILTER, drawn
again).

The size of some releases depends on what is drawn. A failure to store one would reveal its size,
so disk space for the largest possible one is reserved before it is charged.
"""

import os
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from vesper.errors import VesperError
from vesper.files import read_arrays
from vesper.privacy.events import Event
from vesper.privacy.ledger.account import Account, StoredRelease
from vesper.privacy.ledger.receipt import Receipt

Arrays = dict[str, NDArray[Any]]

BYTES_PER_WRITE = 1 << 20
HEADER_BYTES = 1 << 16
"""Upper bound on the bytes of a file in addition to its arrays."""


class ReleaseStore:
    """Releases of one run, in a folder of the data party."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise VesperError(f"{folder}: cannot be created ({error.strerror})") from None

    def reserve(self, number: int, num_bytes: int) -> None:
        """Reserve disk space for a release that is not drawn yet.

        Raises:
            VesperError: there is not enough space.
        """
        reserved_path = self._reserved_path(number)
        try:
            with reserved_path.open("wb") as file:
                _allocate(file, num_bytes + HEADER_BYTES)
        except OSError as error:
            reserved_path.unlink(missing_ok=True)
            raise VesperError(
                f"{self._folder}: expected space for a release of {num_bytes + HEADER_BYTES:,} "
                f"bytes ({error.strerror}); it was not drawn. Free some space, then continue with "
                f"--resume"
            ) from None

    def put(self, number: int, arrays: Arrays) -> str:
        """Store a release and return its digest.

        Raises:
            VesperError: it cannot be written; then it must not be sent.
        """
        digest = _digest_of(arrays)
        path = self._path(number, digest)
        partial = path.with_suffix(f".{os.getpid()}")
        reserved_path = self._reserved_path(number)
        try:
            if reserved_path.exists():
                reserved_path.replace(partial)
            with partial.open("r+b" if partial.exists() else "wb") as file:
                np.savez(file, allow_pickle=False, **arrays)
                file.truncate(file.seek(0, os.SEEK_CUR))
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
            _sync(self._folder)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise VesperError(
                f"{self._folder}: a release cannot be stored ({error.strerror}); it was not sent. "
                f"Free some space, then continue with --resume, at no further cost"
            ) from None
        return digest

    def get(self, number: int, digest: str) -> Arrays:
        """Read a stored release.

        Raises:
            VesperError: its file is missing or was changed.
        """
        path = self._path(number, digest)
        try:
            arrays = read_arrays(path)
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            arrays = {}
        if _digest_of(arrays) != digest:
            raise VesperError(
                f"{path}: release {number} was charged and stored, but its file is missing or "
                f"changed; noise is never drawn twice for one charge. Restore the file, or start "
                f"a new run"
            )
        return arrays

    def holds(self, number: int) -> bool:
        """Whether anything was ever stored for a release."""
        return any(self._folder.glob(f"{number:04d}-*.npz"))

    def find(self, number: int) -> Arrays | None:
        """Read the file of a release, for plans without a ledger to say which file counts."""
        for path in sorted(self._folder.glob(f"{number:04d}-*.npz")):
            return self.get(number, path.stem.partition("-")[2])
        return None

    def _reserved_path(self, number: int) -> Path:
        return self._folder / f"{number:04d}.room"

    def _path(self, number: int, digest: str) -> Path:
        return self._folder / f"{number:04d}-{digest}.npz"


def _digest_of(arrays: Arrays) -> str:
    digest = blake2b(digest_size=16)
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _allocate(file: IO[bytes], num_bytes: int) -> None:
    """Allocate disk space; where the system has no call for it, by writing zeros."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, num_bytes)
        return
    for start in range(0, num_bytes, BYTES_PER_WRITE):
        file.write(bytes(min(BYTES_PER_WRITE, num_bytes - start)))


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def no_check() -> None:
    """Refuse nothing."""


def release_once(
    account: Account,
    release_store: ReleaseStore,
    event: Event,
    draw: Callable[[Receipt], Arrays],
    *,
    run: str,
    number: int,
    before_drawing: Callable[[], None] = no_check,
    reserved_bytes: int = 0,
) -> Arrays:
    """Return release `number` of a run, drawn now or stored before.

    Args:
        account: the account to charge, once.
        release_store: where the release is stored; one store holds the releases of one run.
        event: what to charge.
        draw: draws the release for a receipt.
        run: name of the run in the ledger.
        number: number of the release in its run.
        before_drawing: called before new noise is drawn; raises to refuse, when this release must
            have been drawn before.
        reserved_bytes: bytes to reserve before charging, where the size of the release depends on
            the draw.

    Raises:
        BudgetError: the release does not fit the budget, or was charged as something else.
        VesperError: it was drawn before under another ledger, its file is missing or changed, or
            there is no space for it.
    """
    if not account.is_stored(run=run, number=number):
        before_drawing()
        if release_store.holds(number) and not account.is_charged(run, number):
            raise VesperError(
                f"release {number} of this run was drawn before, but this ledger was not "
                f"charged for it: it is another ledger, or an older copy. Noise is never drawn "
                f"twice; use the ledger that the run started with, or start a new run"
            )
        if reserved_bytes:
            release_store.reserve(number, reserved_bytes)
    charged = account.charge_once(event, None, run=run, number=number)
    if isinstance(charged, StoredRelease):
        return release_store.get(number, charged.digest)
    arrays = draw(charged)
    account.mark_stored(charged, digest=release_store.put(number, arrays))
    return arrays
