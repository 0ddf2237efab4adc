"""Randomised responses in place of training and validation labels, where labels are protected.

They are charged to the label party's ledger before anything is sent, and never change: whatever
becomes of this run, other runs use the same responses at no cost.
"""

import hashlib
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from vesper.graph.labels import LabelHoldings
from vesper.mechanism.first_labels import counted
from vesper.mechanism.label_door import LabelDoor, StaleCheck, ignore_stale
from vesper.mechanism.noise import NoiseSource
from vesper.method.settings import Config
from vesper.model.objective_factory import LabelResponses
from vesper.privacy.ledger.store import Ledger
from vesper.session.run_spec import refuse_equal_labels, refuse_unusable_labels

RESPONSE_SEED_OFFSET = 1 << 63
"""Added to the seed, which is smaller: responses share no random bits with the noise of sums."""

RESPONDED_SPLITS = ("train", "val")
"""Splits whose labels get responses; labels of test nodes are never sent in any form."""


def make_label_responses(
    config: Config,
    labels: LabelHoldings,
    *,
    ledger: Ledger,
    noise: NoiseSource,
    stale: StaleCheck = ignore_stale,
) -> LabelResponses | None:
    """Make the responses; None if labels are not protected.

    `stale` is called with the number of labels that have changed since their first response.

    Raises:
        InputError: these labels cannot be used, or have another epsilon or kind of noise.
        BudgetError: earlier responses were drawn for other classes.
    """
    epsilon = config.privacy.label_epsilon
    if epsilon is None:
        return None
    refuse_unusable_labels(config, labels)  # before anything is charged
    rows = np.concatenate([labels.rows(split) for split in RESPONDED_SPLITS])
    door = LabelDoor(
        tuple(map(str, labels.ids.take(rows))),
        labels.labels[rows],
        classes=tuple(map(str, labels.classes)),
        epsilon=epsilon,
        ledger=ledger,
        noise=noise,
        check_stale=stale,
    )
    seen = door.responses()
    num_train = len(labels.rows("train"))
    refuse_equal_labels(config, labels, "val", seen=seen[num_train:])
    return LabelResponses(seen, epsilon)


def label_table_fingerprint(labels: LabelHoldings, *, key: bytes) -> str:
    """Digest what a run may reveal of a table: ids, splits and class names, but no label.

    Without the key, nobody can check a guess of the ids against it.
    """
    digest = hashlib.blake2b(key=key, digest_size=16, person=b"label table")
    for texts in (labels.classes, labels.ids.values.to_pylist()):
        digest.update(len(texts).to_bytes(8, "little"))
        for text in map(str, texts):
            digest.update(counted(text))
    digest.update(labels.splits.tobytes())
    return digest.hexdigest()


def charge_label_responses(
    config: Config, labels: LabelHoldings, *, path: Path | None, noise: NoiseSource
) -> LabelResponses | None:
    """Make the responses, charged to the ledger in this file."""
    if config.privacy.label_epsilon is None:
        return None
    assert path is not None, "a party's settings were checked for it"
    with closing(Ledger(path, clock=time.time)) as ledger:
        return make_label_responses(config, labels, ledger=ledger, noise=noise)


def simulate_label_responses(
    config: Config, labels: LabelHoldings, *, path: Path | None = None
) -> LabelResponses | None:
    """Make responses from the seed; without a path they are charged to a temporary ledger."""
    noise = NoiseSource.for_simulation(config.run.seed + RESPONSE_SEED_OFFSET)
    with tempfile.TemporaryDirectory(prefix="vesper-") as folder:
        path = path or Path(folder) / "ledger.sqlite"
        return charge_label_responses(config, labels, path=path, noise=noise)
