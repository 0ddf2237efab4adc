"""Labels behind their door: what the data party may ever see of them (claim LABEL-RR).

    response(id) = randomised response with the bits of BLAKE2b(key, k, epsilon, id, label)
    label        = the one that the id had when it was first answered about

The key is made from the ledger's secret, so an id has one response for good, in whatever table it
stands, with or without other ids, and whoever asks: a second run, a second data party, an alignment
that lost a node, a label that has changed since. It is charged once. Another number of classes is
another question, for which the ledger has no budget.

Labels as they may be shown: randomised response (claim LABEL-RR).

    seen = true        where U < keep,   U a uniform word of 64 bits, keep rounded down to 2^-64
         = one of the k - 1 others, each with the same chance, elsewhere

The others are drawn by throwing away words beyond the last multiple of k - 1: the same chance for
each, exactly.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from vesper.errors import BudgetError, InputError, first_three
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.randomized_response import keep_probability
from vesper.privacy.events import PureRelease
from vesper.privacy.ledger.account import Account, StoredRelease, open_account
from vesper.privacy.ledger.receipt import encode
from vesper.privacy.ledger.store import Ledger, key_of
from vesper.privacy.relation import LABELS, LabelRelation

Labels = NDArray[np.int64]
RowIndices = NDArray[np.int64]

Words = Callable[[RowIndices], NDArray[np.uint64]]
"""Rows -> a uniform word of 64 bits for each, independent of all that were given before."""


def respond(labels: Labels, *, epsilon: float, num_classes: int, words: Words) -> Labels:
    """Draw what is shown of each label; (num_labels,).

    Raises:
        InputError: a label that is no class.
    """
    if labels.size and not 0 <= labels.min() <= labels.max() < num_classes:
        raise InputError(
            f"labels: expected classes from 0 to {num_classes - 1}, got {labels.min()} to "
            f"{labels.max()}; leave out nodes without a label"
        )
    keep = Fraction(keep_probability(epsilon=epsilon, num_classes=num_classes))
    everyone = np.arange(len(labels))
    flipped = np.flatnonzero(words(everyone) >= np.uint64(math.floor(keep * 2**64)))
    others = _uniform_below(num_classes - 1, flipped, words)  # (num_flipped,)
    responses = labels.copy()
    responses[flipped] = others + (others >= labels[flipped])
    return responses


def _uniform_below(bound: int, rows: RowIndices, words: Words) -> Labels:
    """Draw a whole number from 0 to bound - 1 for each row, each with the same chance."""
    last = np.uint64(2**64 - 1 - 2**64 % bound)
    values = words(rows)
    while (beyond := values > last).any():
        values[beyond] = words(rows[beyond])
    return (values % np.uint64(bound)).astype(np.int64)


LABELS_RUN = "labels"
"""Name of the charge in the ledger: it belongs to labels, not to runs."""

NameCheck = Callable[[str], None]
StaleCheck = Callable[[int], None]

UNUSED_DELTA = 1e-9
"""A budget has a delta; randomised response needs none of it."""

NUM_LABEL_NODES = 1
"""Labels in the account: what holds for one holds for each."""


def ignore_stale(count: int) -> None:
    """Say nothing of labels that have changed."""


class LabelDoor:
    """A table of labels, and the account of all labels in a ledger.

    Args:
        ids: of the labelled nodes, as text, each once.
        labels: class of each, a position in `classes`.
        classes: their names; how many there are is public.
        epsilon: the budget of each label.
        ledger: the label party's ledger.
        noise: whether responses are secret, or those of a simulation.
        check_name: is told the name of the table before anything is charged; it may refuse.
        check_stale: is told, where there are some, how many labels were others when they were first
            answered about; for this party's eyes. It may refuse.

    Raises:
        InputError: labels have another budget in this ledger.
    """

    def __init__(
        self,
        ids: Sequence[str],
        labels: Labels,
        *,
        classes: Sequence[str],
        epsilon: float,
        ledger: Ledger,
        noise: NoiseSource,
        check_name: NameCheck = lambda name: None,
        check_stale: StaleCheck = ignore_stale,
    ) -> None:
        self._ids, self._labels, self._classes = ids, labels, classes
        self._event, self._check_stale = PureRelease(epsilon=epsilon, what=LABELS), check_stale
        self._ledger = ledger
        self._key = noise.key_for("responses") or ledger.keys.response
        check_name(label_table_fingerprint(ids, labels, classes, key=key_of(ledger)))
        self.account: Account = open_account(
            ledger,
            hashlib.blake2b(key=key_of(ledger), digest_size=16, person=b"all labels").hexdigest(),
            num_nodes=NUM_LABEL_NODES,
            budget=Budget(epsilon=epsilon, delta=UNUSED_DELTA),
            relation=LabelRelation(),
        )

    def responses(self) -> Labels:
        """Give what may be shown of each label, in the order of `ids`; (num_labels,).

        Raises:
            BudgetError: labels of this ledger have been shown with another number of classes.
            InputError: classes were called otherwise.
        """
        epsilon, num_classes = self._event.epsilon, len(self._classes)
        try:
            receipt = self.account.charge_once(
                self._event, None, run=LABELS_RUN, number=num_classes
            )
        except BudgetError as refusal:
            raise BudgetError(
                f"{refusal} Labels were shown with another number of classes than the "
                f"{num_classes} of today; other labels need a ledger of their own."
            ) from None
        assert not isinstance(receipt, StoredRelease), (
            "nothing is kept: it can always be drawn again"
        )
        everyone = encode(None, NUM_LABEL_NODES)
        receipt.spend(event=self._event, receivers=everyone, graph=self.account.graph)
        labels = self._labels_at_first_answer()
        words = KeyedWords(
            self._key,
            self._ids,
            [self._classes[label] for label in labels.tolist()],
            question=f"{num_classes} {epsilon.hex()}",
        )
        return respond(labels, epsilon=epsilon, num_classes=num_classes, words=words)

    def _labels_at_first_answer(self) -> Labels:
        """The labels when they were first answered about; those of today are, from now on."""
        base = hashlib.blake2b(key=key_of(self._ledger), digest_size=16, person=b"label shown")
        names = [_digest(base, each) for each in self._ids]
        labels = self._labels.copy()
        with self._ledger.transaction():
            known = self._ledger.answered_labels(names)
            new = []
            for row, (each, name) in enumerate(zip(self._ids, names, strict=True)):
                today = _digest(base, each, self._classes[labels[row]])
                if name not in known:
                    new.append((name, today))
                elif known[name] != today:
                    labels[row] = self._class_of(known[name], base, each)
            changed = int((labels != self._labels).sum())
            if changed:
                self._check_stale(changed)
            self._ledger.record_answered_labels(new)
        return labels

    def _class_of(self, record: bytes, base: "hashlib.blake2b", each: str) -> int:
        for position, name in enumerate(self._classes):
            if _digest(base, each, name) == record:
                return position
        raise InputError(
            f"labels: id {each} was answered about when its class had a name that is none of "
            f"{first_three(self._classes)}; call classes as they were called, or set party.ledger "
            f"to a ledger of their own, and count both epsilons for who is in both"
        )


class KeyedWords:
    """Words that belong to an id and its label: the same whenever they are asked for again.

    Args:
        key: without it words are uniform and independent, as far as anybody can tell.
        ids: as text, each once.
        labels: the name of the class of each.
        question: what the words are for.
    """

    def __init__(
        self, key: bytes, ids: Sequence[str], labels: Sequence[str], question: str
    ) -> None:
        base = hashlib.blake2b(key=key, digest_size=8, person=b"response")
        base.update(_counted(question))
        self._base, self._ids, self._labels = base, ids, labels
        self._words_given = np.zeros(len(ids), dtype=np.int64)

    def __call__(self, rows: RowIndices) -> NDArray[np.uint64]:
        """Give the next word of each row."""
        words = b"".join(self._word(row) for row in rows.tolist())
        self._words_given[rows] += 1
        return np.frombuffer(words, dtype="<u8").astype(np.uint64)

    def _word(self, row: int) -> bytes:
        turn = f"{self._words_given[row]}"
        return _digest(self._base, self._ids[row], self._labels[row], turn)


def label_table_fingerprint(
    ids: Sequence[str], labels: Labels, classes: Sequence[str], *, key: bytes
) -> str:
    """Digest a table under the ledger's key, whatever its order; nobody can check a guess."""
    digest = hashlib.blake2b(key=key, digest_size=16, person=b"labels")
    digest.update(len(ids).to_bytes(8, "little"))
    for row in sorted(range(len(ids)), key=lambda row: ids[row]):
        digest.update(_counted(ids[row]) + _counted(classes[labels[row]]))
    return digest.hexdigest()


def _digest(base: "hashlib.blake2b", *texts: str) -> bytes:
    digest = base.copy()
    for text in texts:
        digest.update(_counted(text))
    return digest.digest()


def _counted(text: str) -> bytes:
    """Text after its length: no two sequences of texts are written alike."""
    written = text.encode()
    return len(written).to_bytes(8, "little") + written
