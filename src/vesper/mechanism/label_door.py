"""Labels behind their door: what the data party may ever see of them (claim LABEL-RR).

    response(id, label) = randomised response with the bits of BLAKE2b(key, k, epsilon, id, label)

The key is made from the ledger's secret, so a label of an id has one response for good, in
whatever table it stands, with or without other ids, and whoever asks: a second run, a second data
party, an alignment that lost a node. It is charged once. Another label of an id that was answered
about is refused, and so is another number of classes: those are other questions, for which the
ledger has no budget.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vesper.errors import BudgetError
from vesper.mechanism.label_response import Labels, Rows, respond
from vesper.mechanism.labels_shown import LabelsShown
from vesper.mechanism.noise import NoiseSource
from vesper.privacy.account import Account, Kept, open_account
from vesper.privacy.budget import Budget
from vesper.privacy.events import PureRelease
from vesper.privacy.key import key_of
from vesper.privacy.ledger import Ledger
from vesper.privacy.receivers import encode
from vesper.privacy.relation import LABELS, LabelRelation

RUN = "labels"
"""Name of the charge in the ledger: it belongs to labels, not to runs."""

Named = Callable[[str], None]

UNUSED_DELTA = 1e-9
"""A budget has a delta; randomised response needs none of it."""

ANY_LABEL = 1
"""Labels in the account: what holds for one holds for each."""


class LabelDoor:
    """A table of labels, and the account of all labels in a ledger.

    Args:
        ids: of the labelled nodes, as text.
        labels: class of each.
        num_classes: how many there are; public.
        epsilon: the budget of each label.
        ledger: the label party's ledger.
        noise: whether responses are secret, or those of a simulation.
        shown: folder beside the ledger, for what has been answered about.
        named: is told the name of the table before anything is charged; it may refuse.

    Raises:
        InputError: labels have another budget in this ledger.
    """

    def __init__(
        self,
        ids: Sequence[str],
        labels: Labels,
        *,
        num_classes: int,
        epsilon: float,
        ledger: Ledger,
        noise: NoiseSource,
        shown: Path,
        named: Named = lambda name: None,
    ) -> None:
        self._ids, self._labels, self._num_classes = ids, labels, num_classes
        self._event = PureRelease(epsilon=epsilon, what=LABELS)
        self._key = noise.key_for("responses") or ledger.keys.response
        self._shown = LabelsShown(shown, key=key_of(ledger))
        self._table = fingerprint_of(ids, labels, num_classes, key=key_of(ledger))
        named(self._table)
        self.account: Account = open_account(
            ledger,
            hashlib.blake2b(key=key_of(ledger), digest_size=16, person=b"all labels").hexdigest(),
            num_nodes=ANY_LABEL,
            budget=Budget(epsilon=epsilon, delta=UNUSED_DELTA),
            relation=LabelRelation(),
        )

    def responses(self) -> Labels:
        """Give what may be shown of each label, in the order of `ids`; (num_labels,).

        Raises:
            InputError: some ids have been answered about with another label.
            BudgetError: labels of this ledger have been shown with another number of classes.
        """
        self._shown.add(self._table, self._ids, self._labels)
        try:
            receipt = self.account.charge_once(self._event, None, run=RUN, number=self._num_classes)
        except BudgetError as refusal:
            raise BudgetError(
                f"{refusal} Labels were shown with another number of classes than the "
                f"{self._num_classes} of today; other labels need a ledger of their own."
            ) from None
        assert not isinstance(receipt, Kept), "nothing is kept: it can always be drawn again"
        everyone = encode(None, ANY_LABEL)
        receipt.spend(event=self._event, receivers=everyone, graph=self.account.graph)
        epsilon, num_classes = self._event.epsilon, self._num_classes
        words = OwnWords(self._key, self._ids, self._labels, f"{num_classes} {epsilon.hex()}")
        return respond(self._labels, epsilon=epsilon, num_classes=num_classes, words=words)


class OwnWords:
    """Words that belong to an id and its label: the same whenever they are asked for again.

    Args:
        key: without it words are uniform and independent, as far as anybody can tell.
        ids: as text, each once.
        labels: class of each.
        question: what the words are for.
    """

    def __init__(self, key: bytes, ids: Sequence[str], labels: Labels, question: str) -> None:
        base = hashlib.blake2b(key=key, digest_size=8, person=b"response")
        base.update(_counted(question.encode()))
        self._base, self._ids, self._labels = base, ids, labels
        self._given = np.zeros(len(ids), dtype=np.int64)

    def __call__(self, rows: Rows) -> NDArray[np.uint64]:
        """Give the next word of each row."""
        words = b"".join(self._word(row) for row in rows.tolist())
        self._given[rows] += 1
        return np.frombuffer(words, dtype="<u8").astype(np.uint64)

    def _word(self, row: int) -> bytes:
        digest = self._base.copy()
        digest.update(_counted(self._ids[row].encode()))
        digest.update(int(self._labels[row]).to_bytes(8, "little"))
        digest.update(int(self._given[row]).to_bytes(8, "little"))
        return digest.digest()


def fingerprint_of(ids: Sequence[str], labels: Labels, num_classes: int, *, key: bytes) -> str:
    """Digest a table under the ledger's key, whatever its order; nobody can check a guess."""
    digest = hashlib.blake2b(key=key, digest_size=16, person=b"labels")
    digest.update(num_classes.to_bytes(8, "little") + len(ids).to_bytes(8, "little"))
    order = sorted(range(len(ids)), key=lambda row: ids[row])
    for row in order:
        digest.update(_counted(ids[row].encode()))
    digest.update(labels[order].astype("<i8").tobytes())
    return digest.hexdigest()


def _counted(text: bytes) -> bytes:
    """Text after its length: no two sequences of texts are written alike."""
    return len(text).to_bytes(8, "little") + text
