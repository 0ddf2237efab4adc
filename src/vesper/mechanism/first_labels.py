"""The label that each id had when it was first answered, recorded in the chain of the ledger.

    record = BLAKE2b(key, id), BLAKE2b(key, id, label)      an id's first record is its only one

Records are written before the response leaves, all new ones of a table in one entry that costs
nothing. The size of an entry depends on the number of new ids, never on a label. As every entry, it
is chained: a ledger from which it was removed, or an older copy, is refused. Otherwise a label that
has changed would get a second response, for which nothing was charged.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vesper.privacy.ledger.store import Ledger, key_of

ANSWERED_KIND = "labels answered"
"""Entry that records labels; its records are in place of receivers."""

DIGEST_BYTES = 16
RECORD_BYTES = 2 * DIGEST_BYTES

MOST_RECORDS = 1 << 20
"""Most records in one entry: 32 MiB, far below what SQLite can hold in one cell."""


class FirstLabels:
    """Records of answered labels in one account of a ledger.

    Args:
        ledger: the label party's ledger.
        account: name of the account of all labels.
        run: run name of the entries.
    """

    def __init__(self, ledger: Ledger, *, account: str, run: str) -> None:
        self._ledger, self._account, self._run = ledger, account, run
        self._base = hashlib.blake2b(
            key=key_of(ledger), digest_size=DIGEST_BYTES, person=b"label answered"
        )

    def look_up(
        self, ids: Sequence[str], labels: NDArray[np.int64], classes: Sequence[str]
    ) -> NDArray[np.int64]:
        """Return labels as they were when first answered; record those of new ids; (num_labels,).

        Call it inside a transaction.
        """
        known, first = self._read(), labels.copy()
        new = []
        for row, each in enumerate(ids):
            name = digest_texts(self._base, each)
            label = digest_texts(self._base, each, classes[labels[row]])
            if name not in known:
                new.append(name + label)
            elif known[name] != label:
                first[row] = self._class_of(known[name], each, classes)
        self._append(new)
        return first

    def _read(self) -> dict[bytes, bytes]:
        """Read all records: digests of ids, with digests of id and label."""
        known = dict[bytes, bytes]()
        for entry in self._ledger.entries():
            if (entry.graph, entry.facts["kind"]) == (self._account, ANSWERED_KIND):
                records = entry.receivers
                for at in range(0, len(records), RECORD_BYTES):
                    middle = at + DIGEST_BYTES
                    known[records[at:middle]] = records[middle : at + RECORD_BYTES]
        return known

    def _append(self, records: list[bytes]) -> None:
        for start in range(0, len(records), MOST_RECORDS):
            part = records[start : start + MOST_RECORDS]
            self._ledger.append(
                graph=self._account,
                run=self._run,
                facts={"kind": ANSWERED_KIND, "labels": len(part)},
                cost=0.0,
                encoded_receivers=b"".join(part),
            )

    def _class_of(self, record: bytes, each: str, classes: Sequence[str]) -> int:
        for position, name in enumerate(classes):
            if digest_texts(self._base, each, name) == record:
                return position
        raise AssertionError(f"id {each} was answered under a class that was never charged")


def digest_texts(base: "hashlib.blake2b", *texts: str) -> bytes:
    """Digest a sequence of texts; no two sequences are encoded alike."""
    digest = base.copy()
    for text in texts:
        digest.update(counted(text))
    return digest.digest()


def counted(text: str) -> bytes:
    """Prefix text with its length, so that no two sequences of texts encode alike."""
    written = text.encode()
    return len(written).to_bytes(8, "little") + written
