"""Labels behind their door: what the data party may ever see of them (claim LABEL-RR).

    responses = randomised response of every label, charged, drawn once for a table, kept for ever

A table is known by a keyed digest of ids and labels, whatever its order. A later run on the same
table gets the same responses and pays nothing; a table with one label more or less is another one.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from vesper.mechanism.drawn_once import drawn_once
from vesper.mechanism.label_response import Labels, respond
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.vault import Arrays, Vault
from vesper.privacy.account import Account, open_account
from vesper.privacy.budget import Budget
from vesper.privacy.events import PureRelease
from vesper.privacy.key import key_of
from vesper.privacy.ledger import Ledger
from vesper.privacy.receipt import Receipt
from vesper.privacy.receivers import encode
from vesper.privacy.relation import LABELS, LabelRelation

RUN = "labels"
"""Name of all draws in the ledger: they belong to tables, not to runs."""

Named = Callable[[str], None]

UNUSED_DELTA = 1e-9
"""A budget has a delta; randomised response needs none of it."""


class LabelDoor:
    """One table of labels and its account.

    Args:
        ids: of the labelled nodes, as text.
        labels: class of each.
        num_classes: how many there are; public.
        epsilon: the budget of each label.
        ledger: the label party's ledger.
        noise: where the responses come from.
        kept: folder for responses.
        named: is told the name of the table before anything is charged; it may refuse.

    Raises:
        InputError: this table has another budget in this ledger.
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
        kept: Path,
        named: Named = lambda name: None,
    ) -> None:
        self._order = np.array(sorted(range(len(ids)), key=lambda row: ids[row]))
        self._labels, self._num_classes = labels[self._order], num_classes
        self._noise, self._event = noise, PureRelease(epsilon=epsilon, what=LABELS)
        name = fingerprint_of(
            [ids[row] for row in self._order], self._labels, num_classes, key=key_of(ledger)
        )
        named(name)
        self.account: Account = open_account(
            ledger,
            name,
            num_nodes=len(ids),
            budget=Budget(epsilon=epsilon, delta=UNUSED_DELTA),
            relation=LabelRelation(),
        )
        self._vault = Vault(kept / name)

    def responses(self) -> Labels:
        """Give what may be shown of each label, in the order of `ids`; (num_labels,)."""

        def draw(receipt: Receipt) -> Arrays:
            everyone = encode(None, len(self._labels))
            receipt.spend(event=self._event, receivers=everyone, graph=self.account.graph)
            seen = respond(
                self._labels,
                epsilon=self._event.epsilon,
                num_classes=self._num_classes,
                noise=self._noise,
            )
            return {"seen": seen}

        kept = drawn_once(self.account, self._vault, self._event, draw, run=RUN, number=0)
        seen: Labels = np.empty_like(self._labels)
        seen[self._order] = kept["seen"]
        return seen


def fingerprint_of(ids: Sequence[str], labels: Labels, num_classes: int, *, key: bytes) -> str:
    """Digest ids and labels under the ledger's key; nobody can check a guess against it."""
    digest = hashlib.blake2b(key=key, digest_size=16, person=b"labels")
    digest.update(num_classes.to_bytes(8, "little") + len(ids).to_bytes(8, "little"))
    for each in ids:
        text = each.encode()
        digest.update(len(text).to_bytes(8, "little") + text)
    digest.update(labels.astype("<i8").tobytes())
    return digest.hexdigest()
