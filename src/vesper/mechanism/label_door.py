"""Door for labels: randomised response is all that data parties ever see (claim LABEL-RR).

    response(id) = randomised response with the bits of BLAKE2b(key, k, epsilon, id, label)
    label        = the label that the id had when it was first answered

The key is derived from the ledger's secret, so an id has one response forever: in whatever table it
appears, with or without other ids, in a second run, for a second data party, after an alignment
that lost a node, after its label has changed, with its classes in another order. It is charged
once, to the one account of all labels; the chain of the ledger holds the labels first answered
(`first_labels`). Another set of classes would be a second release, for which there is no budget.

    response = label       where U < keep,   U a uniform 64-bit word, keep rounded down to 2^-64
             = one of the k - 1 other classes, in the order of their names, uniformly, elsewhere

Other classes are drawn by rejecting words beyond the last multiple of k - 1, so that all have
exactly the same chance.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from vesper.errors import BudgetError, InputError, first_three
from vesper.mechanism.first_labels import FirstLabels, counted, digest_texts
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.randomized_response import keep_probability
from vesper.privacy.events import PureRelease
from vesper.privacy.ledger.account import Account, StoredRelease, open_account
from vesper.privacy.ledger.receipt import everyone
from vesper.privacy.ledger.store import Ledger, key_of
from vesper.privacy.relation import LABELS, LabelRelation

Labels = NDArray[np.int64]
RowIndices = NDArray[np.int64]

Words = Callable[[RowIndices], NDArray[np.uint64]]
"""Row indices -> a uniform 64-bit word for each, independent of all words returned before."""


def respond(labels: Labels, *, epsilon: float, num_classes: int, words: Words) -> Labels:
    """Draw the randomised response of each label; (num_labels,).

    Raises:
        InputError: a label is not a class.
    """
    if labels.size and not 0 <= labels.min() <= labels.max() < num_classes:
        raise InputError(
            f"labels: expected classes from 0 to {num_classes - 1}, got {labels.min()} to "
            f"{labels.max()}; leave out nodes without a label"
        )
    keep = Fraction(keep_probability(epsilon=epsilon, num_classes=num_classes))
    rows = np.arange(len(labels))
    flipped = np.flatnonzero(words(rows) >= np.uint64(math.floor(keep * 2**64)))
    others = _uniform_below(num_classes - 1, flipped, words)  # (num_flipped,)
    responses = labels.copy()
    responses[flipped] = others + (others >= labels[flipped])
    return responses


def _uniform_below(bound: int, rows: RowIndices, words: Words) -> Labels:
    """Draw an integer from 0 to bound - 1 for each row, uniformly."""
    last = np.uint64(2**64 - 1 - 2**64 % bound)
    values = words(rows)
    while (beyond := values > last).any():
        values[beyond] = words(rows[beyond])
    return (values % np.uint64(bound)).astype(np.int64)


LABELS_ACCOUNT = "(labels)"
"""Account of all labels of a ledger; a graph cannot be given a name with parentheses."""

LABELS_RUN = "labels"
"""Run name of the charge in the ledger: it belongs to labels, not to any run."""

StaleCheck = Callable[[int], None]

UNUSED_DELTA = 1e-9
"""Delta of the label budget; a budget needs one, randomised response spends none of it."""

NUM_LABEL_NODES = 1
"""Nodes in the label account: every label is charged alike, so one entry covers all."""


def ignore_stale(count: int) -> None:
    """Ignore labels that have changed."""


class LabelDoor:
    """A table of labels, and the account of all labels in a ledger.

    Args:
        ids: ids of the labelled nodes, as text, each once.
        labels: class of each id, as a position in `classes`.
        classes: class names; their number is public.
        epsilon: the budget of each label.
        ledger: the label party's ledger.
        noise: whether responses are secret or those of a simulation.
        check_stale: called with the number of labels that have changed since they were first
            answered, if there are any; for this party only. May raise to refuse.

    Raises:
        InputError: labels have another epsilon in this ledger, or another kind of noise.
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
        check_stale: StaleCheck = ignore_stale,
    ) -> None:
        self._ids, self._labels, self._classes = ids, labels, classes
        self._event, self._check_stale = PureRelease(epsilon=epsilon, what=LABELS), check_stale
        self._ledger = ledger
        self._key = noise.key_for("responses") or ledger.keys.response
        with ledger.transaction():
            _refuse_other_terms(ledger, epsilon=epsilon, is_private=noise.is_private)
            self.account: Account = open_account(
                ledger,
                LABELS_ACCOUNT,
                num_nodes=NUM_LABEL_NODES,
                budget=Budget(epsilon=epsilon, delta=UNUSED_DELTA),
                relation=LabelRelation(),
                simulated=not noise.is_private,
            )

    def responses(self) -> Labels:
        """Return the randomised response of each label, in the order of `ids`; (num_labels,).

        Raises:
            BudgetError: labels of this ledger were released with other classes.
        """
        epsilon, num_classes = self._event.epsilon, len(self._classes)
        number = number_of_classes(self._classes, key=key_of(self._ledger))
        try:
            receipt = self.account.charge_once(self._event, None, run=LABELS_RUN, number=number)
        except BudgetError as refusal:
            raise BudgetError(
                f"{refusal} Labels of this ledger were released with classes other than "
                f"{first_three(self._classes)}; restore the old class names, or set party.ledger "
                f"to a ledger of its own and add both epsilons for ids that are in both."
            ) from None
        assert not isinstance(receipt, StoredRelease), (
            "responses are never stored: they can always be computed again"
        )
        receipt.spend(
            event=self._event, receivers=everyone(NUM_LABEL_NODES), graph=self.account.graph
        )
        labels = self._labels_at_first_answer()
        words = KeyedWords(
            self._key,
            self._ids,
            [self._classes[label] for label in labels.tolist()],
            question=f"{num_classes} {epsilon.hex()}",
        )
        # Not by position in `classes`: the same classes in another order give the same response.
        by_name = np.array(sorted(range(num_classes), key=lambda k: self._classes[k]))
        places = np.argsort(by_name)  # (num_classes,) place of each class in the order of names
        responses = respond(
            places[labels.astype(np.int64)], epsilon=epsilon, num_classes=num_classes, words=words
        )
        in_order_of_classes: Labels = by_name[responses]
        return in_order_of_classes

    def _labels_at_first_answer(self) -> Labels:
        """Labels as they were when first answered; new ids are recorded with their current label.

        Labels that have changed are for this party to know, so `check_stale` decides.
        """
        records = FirstLabels(self._ledger, account=LABELS_ACCOUNT, run=LABELS_RUN)
        with self._ledger.transaction():
            labels = records.look_up(self._ids, self._labels, self._classes)
            changed = int((labels != self._labels).sum())
            if changed:
                self._check_stale(changed)
        return labels


def _refuse_other_terms(ledger: Ledger, *, epsilon: float, is_private: bool) -> None:
    """Refuse labels whose responses were drawn with another epsilon or kind of noise."""
    entries = (entry for entry in ledger.entries() if entry.graph == LABELS_ACCOUNT)
    known = {entry.facts["kind"]: entry.facts for entry in entries}
    held = known.get("budget", {}).get("epsilon", epsilon)
    if held != epsilon:
        raise InputError(
            f"{ledger.path}: labels have a budget of epsilon {held:g} in this ledger, got "
            f"label_epsilon {epsilon:g}; use {held:g}, or set party.ledger to a ledger of its own "
            f"and add both epsilons for ids that are in both"
        )
    was_simulated = known.get("graph", {}).get("simulated", not is_private)
    if was_simulated == is_private:
        raise InputError(
            f"{ledger.path}: responses to labels were {'simulated' if was_simulated else 'secret'} "
            f"in this ledger so far, and the two are never mixed; use another ledger"
        )


class KeyedWords:
    """Uniform words derived from an id and its label: the same sequence every time.

    Args:
        key: secret; without it words cannot be told from uniform, independent ones.
        ids: ids as text, each once.
        labels: class name of each id.
        question: what the words are for.
    """

    def __init__(
        self, key: bytes, ids: Sequence[str], labels: Sequence[str], question: str
    ) -> None:
        base = hashlib.blake2b(key=key, digest_size=8, person=b"response")
        base.update(counted(question))
        self._base, self._ids, self._labels = base, ids, labels
        self._words_given = np.zeros(len(ids), dtype=np.int64)

    def __call__(self, rows: RowIndices) -> NDArray[np.uint64]:
        """Return the next word of each row."""
        words = b"".join(self._word(row) for row in rows.tolist())
        self._words_given[rows] += 1
        return np.frombuffer(words, dtype="<u8").astype(np.uint64)

    def _word(self, row: int) -> bytes:
        turn = f"{self._words_given[row]}"
        return digest_texts(self._base, self._ids[row], self._labels[row], turn)


def number_of_classes(classes: Sequence[str], *, key: bytes) -> int:
    """Number a set of class names, whatever their order: the release that a charge is for."""
    digest = hashlib.blake2b(key=key, digest_size=8, person=b"label classes")
    for name in sorted(classes):
        digest.update(counted(name))
    return int.from_bytes(digest.digest(), "big")
