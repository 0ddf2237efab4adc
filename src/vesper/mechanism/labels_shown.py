"""Which labels have been answered about: a file a table, beside the ledger, in keyed digests.

    LEDGER.shown/TABLE.npz     ids (n,), records (n,): digests of the id, and of id and label

An id whose label is another than the one that was answered about is refused: both answers together
would tell that it has changed, or how two kinds of labels hang together (claim LABEL-RR).
"""

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError, VesperError, first_three
from vesper.mechanism.label_response import Labels
from vesper.whole_file import write_whole


class LabelsShown:
    """All tables that a ledger was charged for.

    Args:
        folder: beside the ledger.
        key: of the ledger; without it nobody can check a guess.
    """

    def __init__(self, folder: Path, *, key: bytes) -> None:
        self._folder, self._key = folder, key

    def add(self, table: str, ids: Sequence[str], labels: Labels) -> None:
        """Write a table down before anything of it is shown.

        Raises:
            InputError: some of its ids have been answered about with another label.
            VesperError: what was written before cannot be read, or this cannot be written.
        """
        path = self._folder / f"{table}.npz"
        if path.exists():
            return
        digests, records = self._digests(ids, labels)
        for known in sorted(self._folder.glob("*.npz")):
            self._refuse_other(known, ids, digests, records)
        written = io.BytesIO()
        np.savez(written, allow_pickle=False, ids=digests, records=records)
        try:
            self._folder.mkdir(exist_ok=True, mode=0o700)
            write_whole(path, written.getvalue())
        except OSError as error:
            raise VesperError(f"{path}: cannot be written ({error.strerror}); make room") from None

    def _refuse_other(
        self,
        known: Path,
        ids: Sequence[str],
        digests: NDArray[np.bytes_],
        records: NDArray[np.uint64],
    ) -> None:
        try:
            with np.load(known, allow_pickle=False) as file:
                before, then = file["ids"], file["records"]
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise VesperError(f"{known}: cannot be read ({error}); restore it") from None
        _, ours, theirs = np.intersect1d(digests, before, return_indices=True)
        other = ours[records[ours] != then[theirs]]
        if len(other):
            named = first_three(f"id {ids[row]}" for row in other[:3])
            raise InputError(
                f"labels: {len(other)} ids have another label than the one that the data party was "
                f"answered about under this ledger ({named}); the two answers would tell that it "
                f"changed. Put them back or leave these ids out; for labels of another kind, or of "
                f"another time, set party.ledger to one of their own, and count both epsilons for "
                f"who is in both. Nothing was charged"
            )

    def _digests(
        self, ids: Sequence[str], labels: Labels
    ) -> tuple[NDArray[np.bytes_], NDArray[np.uint64]]:
        base = hashlib.blake2b(key=self._key, digest_size=16, person=b"label shown")
        names, records = [], []
        for each, label in zip(ids, labels.tolist(), strict=True):
            digest = base.copy()
            digest.update(each.encode())
            names.append(digest.hexdigest())
            digest.update(b"\0" + int(label).to_bytes(8, "little"))
            records.append(int.from_bytes(digest.digest()[:8], "little"))
        return np.array(names, dtype="S32"), np.array(records, dtype=np.uint64)
