"""Releases on disk: drawn once, read ever after.

    NNNN-digest.npz   release NNNN, with the digest of its arrays
    NNNN.key          secret key of its noise, from before it is drawn until it is stored

    ledger: charged  -->  key on disk  -->  drawn from it  -->  file on disk
                     -->  ledger: stored, with the digest  -->  key deleted

A release is charged, drawn and stored, and only then used; one that was stored before is read
instead of drawn. Whatever is written is complete and on disk before the next step. A process that
dies before its release is stored has sent nothing. The next one draws again under the same charge,
from the same key, hence the same values: a release is fixed as soon as its key is on disk (claim
L-FILTER, drawn again).

Why a key. The size of a graph of noisy edges depends on the draw, and with it memory, disk space
and time. If every attempt drew afresh, the draw that is kept would be one that the process
survived: large ones would be missing. Bounding memory and disk beforehand does not cure that, since
a bound on the noisy edges either depends on the true ones or drops some. With a key, survival
selects nothing: it decides when the one draw is sent, or that it never is.

Whoever has the key can remove the noise. So it is readable by this user only, like the graph, and
deleted as soon as the ledger knows the release, with everything else of that number: drafts of
processes that read other messages, and the key if a process died just before it would have deleted
it. Files that a process was still writing when it died go when the folder is next opened. A draft
without a key that the ledger does not know means that the ledger is an older copy.

Simulated noise has no secret to store: a process that resumes takes its noise from the beginning of
the seed's stream.
"""

import os
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from vesper.errors import VesperError
from vesper.files import partial_folder, read_arrays, remove_abandoned
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.release_key import PARTIAL, durable_key, sync_folder
from vesper.privacy.events import Event
from vesper.privacy.ledger.account import Account, StoredRelease
from vesper.privacy.ledger.receipt import Receipt

Arrays = dict[str, NDArray[Any]]

Draw = Callable[[Receipt, NoiseSource], Arrays]
"""Draws a release for a receipt, with noise from the source."""


class ReleaseStore:
    """Releases of one run, in a folder of the data party."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise VesperError(f"{folder}: cannot be created ({error.strerror})") from None
        remove_abandoned(folder, PARTIAL)

    def noise_for(self, number: int, noise: NoiseSource) -> NoiseSource:
        """Return noise for a release, the same in every attempt if it is private.

        Raises:
            VesperError: the key of the release cannot be stored or read; it must not be drawn.
        """
        if not noise.is_private:
            return noise
        return NoiseSource.for_release(durable_key(self._key_path(number)))

    def put(self, number: int, arrays: Arrays) -> str:
        """Store a release and return its digest.

        Raises:
            VesperError: it cannot be written; then it must not be sent.
        """
        digest = _digest_of(arrays)
        try:
            with partial_folder(self._folder, PARTIAL) as partial:
                with (partial / "release").open("wb") as file:
                    np.savez(file, allow_pickle=False, **arrays)
                    file.flush()
                    os.fsync(file.fileno())
                (partial / "release").replace(self._path(number, digest))
            sync_folder(self._folder)
        except OSError as error:
            raise VesperError(
                f"{self._folder}: a release cannot be stored ({error.strerror}); it was not sent. "
                f"Free some space, then continue with --resume, at no further cost"
            ) from None
        return digest

    def get(self, number: int, digest: str) -> Arrays:
        """Read the stored release that counts, and delete what else there is of its number.

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
        self.keep_only(number, digest)
        return arrays

    def keep_only(self, number: int, digest: str) -> None:
        """Delete the key and all drafts of a release, except the one that the ledger records.

        Raises:
            VesperError: something cannot be deleted.
        """
        others = {*self._drafts(number), *self._folder.glob(f"{number:04d}.*")}
        others.discard(self._path(number, digest))
        for path in others:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise VesperError(
                    f"{path}: cannot be deleted ({error.strerror}), but whoever has it can learn "
                    f"more than was released; delete it, then continue with --resume"
                ) from None

    def holds(self, number: int) -> bool:
        """Whether anything was ever drawn and stored for a release."""
        return bool(self._drafts(number))

    def has_key(self, number: int) -> bool:
        """Whether noise of a release was chosen, and the release not recorded as stored."""
        return self._key_path(number).exists()

    def find(self, number: int) -> Arrays | None:
        """Read the file of a release, for plans without a ledger to say which file counts."""
        for path in self._drafts(number):
            return self.get(number, path.stem.partition("-")[2])
        return None

    def _drafts(self, number: int) -> list[Path]:
        return sorted(self._folder.glob(f"{number:04d}-*.npz"))

    def _key_path(self, number: int) -> Path:
        return self._folder / f"{number:04d}.key"

    def _path(self, number: int, digest: str) -> Path:
        return self._folder / f"{number:04d}-{digest}.npz"


def _digest_of(arrays: Arrays) -> str:
    digest = blake2b(digest_size=16)
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def no_check() -> None:
    """Refuse nothing."""


def release_once(
    account: Account,
    release_store: ReleaseStore,
    event: Event,
    draw: Draw,
    *,
    noise: NoiseSource,
    run: str,
    number: int,
    before_drawing: Callable[[], None] = no_check,
) -> Arrays:
    """Return release `number` of a run, drawn now or stored before.

    Args:
        account: the account to charge, once.
        release_store: where the release is stored; one store holds the releases of one run.
        event: what to charge.
        draw: draws the release for a receipt.
        noise: where noise comes from; if it is private, the release gets its own key.
        run: name of the run in the ledger.
        number: number of the release in its run.
        before_drawing: called before new noise is drawn; raises to refuse, when this release must
            have been drawn before.

    Raises:
        BudgetError: the release does not fit the budget, or was charged as something else.
        VesperError: it was drawn before under another ledger, its file is missing or changed, or
            it cannot be stored.
    """
    if not account.is_stored(run=run, number=number):
        before_drawing()
        is_charged = account.is_charged(run, number)
        _refuse_other_ledger(release_store, noise, number, is_charged=is_charged)
    charged = account.charge_once(event, None, run=run, number=number)
    if isinstance(charged, StoredRelease):
        return release_store.get(number, charged.digest)
    arrays = draw(charged, release_store.noise_for(number, noise))
    digest = release_store.put(number, arrays)
    account.mark_stored(charged, digest=digest)
    release_store.keep_only(number, digest)
    return arrays


def _refuse_other_ledger(
    release_store: ReleaseStore, noise: NoiseSource, number: int, *, is_charged: bool
) -> None:
    """Refuse a ledger that knows less of a release than its files: it may have been sent.

    Raises:
        VesperError: there are files without a charge, or a draft whose key was deleted, as it is
            once the ledger has recorded the draft.
    """
    is_drawn, has_key = release_store.holds(number), release_store.has_key(number)
    if is_charged and (not is_drawn or has_key or not noise.is_private):
        return
    if not is_drawn and not has_key:
        return
    unknown = "that it was stored" if is_charged else "that it was charged"
    raise VesperError(
        f"release {number} of this run was drawn before, but this ledger does not record "
        f"{unknown}: it is another ledger, or an older copy. Noise is never drawn twice; use the "
        f"ledger that the run started with, or start a new run"
    )
