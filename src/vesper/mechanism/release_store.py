"""Released arrays on disk: drawn once, read ever after.

    file = number of the release, digest of what is in it

A file is whole and on disk before `put` returns. What the ledger says was kept is what counts;
other files are leftovers of a process that died before it could say so. Room for what has no size
that is known beforehand is taken before it is drawn, so that no draw is too large to be kept.

Charge, draw, keep, and only then hand on: what was kept before is read instead of drawn.

    ledger:  charged --> (noise is drawn) --> kept, with the digest of the file in the vault

A process that dies in between has handed nothing on; it draws again under the same charge (claim
L-FILTER, drawn again). Where the size of what is drawn tells something of it, whether it could be
kept would too: room for it is taken before it is charged.
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
"""Bytes of a file beside its arrays, and more."""


class ReleaseStore:
    """Releases of one run, in a folder of the data party."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise VesperError(f"{folder}: cannot be made ({error.strerror})") from None

    def reserve(self, number: int, num_bytes: int) -> None:
        """Take room for a release that is not drawn yet.

        Raises:
            VesperError: there is not so much.
        """
        reserved_path = self._reserved_path(number)
        try:
            with reserved_path.open("wb") as file:
                _allocate(file, num_bytes + HEADER_BYTES)
        except OSError as error:
            reserved_path.unlink(missing_ok=True)
            raise VesperError(
                f"{self._folder}: expected room for {num_bytes + HEADER_BYTES:,} bytes of a release "
                f"({error.strerror}); it was not drawn. Make room, then go on with --resume"
            ) from None

    def put(self, number: int, arrays: Arrays) -> str:
        """Keep a release; give its digest.

        Raises:
            VesperError: it cannot be written; nothing may leave.
        """
        digest = _digest_of(arrays)
        path = self._path(number, digest)
        partial = path.with_suffix(f".{os.getpid()}")
        reserved_path = self._reserved_path(number)
        try:
            if reserved_path.exists():
                os.replace(reserved_path, partial)
            with partial.open("r+b" if partial.exists() else "wb") as file:
                np.savez(file, allow_pickle=False, **arrays)
                file.truncate(file.seek(0, os.SEEK_CUR))
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
            _sync(self._folder)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise VesperError(
                f"{self._folder}: a release cannot be kept ({error.strerror}); nothing has left. "
                f"Make room, then go on with --resume: it costs nothing again"
            ) from None
        return digest

    def get(self, number: int, digest: str) -> Arrays:
        """Read what was kept.

        Raises:
            VesperError: it is lost or was changed.
        """
        path = self._path(number, digest)
        try:
            arrays = read_arrays(path)
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            arrays = {}
        if _digest_of(arrays) != digest:
            raise VesperError(
                f"{path}: release {number} was charged and kept, but its file is lost or changed; "
                f"noise is never drawn twice for one charge. Restore the file, or begin a new run"
            )
        return arrays

    def holds(self, number: int) -> bool:
        """Whether something was ever drawn for a release."""
        return any(self._folder.glob(f"{number:04d}-*.npz"))

    def find(self, number: int) -> Arrays | None:
        """Read the file of a release, for plans that have no ledger to say which one counts."""
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
    """Take so many bytes of the disk; where the system has no call for it, by writing them."""
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
    """Give release `number` of a run, drawn now or kept before.

    Args:
        account: is charged, once.
        release_store: keeps what is drawn.
        event: what is charged.
        draw: draws, for a receipt.
        run: its name in the ledger; one vault holds releases of one run.
        number: of the release in its run.
        before_drawing: refuses, by raising, what must have been drawn before.
        reserved_bytes: bytes to take before drawing, where the size of what is drawn depends on the draw.

    Raises:
        BudgetError: it does not fit, or was charged as something else.
        VesperError: it was drawn before under another ledger, or its file is lost, or there is no
            room for it.
    """
    if not account.is_stored(run=run, number=number):
        before_drawing()
        if release_store.holds(number) and not account.is_charged(run, number):
            raise VesperError(
                f"release {number} of this run was drawn before, but this ledger was not "
                f"charged for it: it is another ledger, or an older copy. Noise is never drawn "
                f"twice; use the ledger that the run began with, or begin a new run"
            )
        if reserved_bytes:
            release_store.reserve(number, reserved_bytes)
    charged = account.charge_once(event, None, run=run, number=number)
    if isinstance(charged, StoredRelease):
        return release_store.get(number, charged.digest)
    arrays = draw(charged)
    account.mark_stored(charged, digest=release_store.put(number, arrays))
    return arrays
