"""Responses to the labels of training and validation nodes, where the contract protects labels.

They are drawn before anything is sent, charged to the label party's ledger, and kept: whatever
becomes of the run, another one on the same labels has them for nothing.
"""

import time
from contextlib import closing
from pathlib import Path

import numpy as np

from vesper.graph.labels import LabelHoldings
from vesper.mechanism.label_door import LabelDoor
from vesper.mechanism.noise import NoiseSource
from vesper.method.settings import Config
from vesper.model.objectives import Responses
from vesper.privacy.ledger import Ledger
from vesper.run.agreement import refuse_unusable_labels

SHOWN = ("train", "val")
"""Splits of which something crosses; labels of test nodes never do."""


def responses_of(
    config: Config, labels: LabelHoldings, *, ledger: Path | None, noise: NoiseSource
) -> Responses | None:
    """Give the responses, drawn now or kept beside the ledger; None where labels are open.

    Raises:
        InputError: these labels have another budget in this ledger.
    """
    epsilon = config.privacy.label_epsilon
    if epsilon is None:
        return None
    assert ledger is not None, "a party's settings were checked for it"
    refuse_unusable_labels(config, labels)  # before anything is charged
    rows = np.concatenate([labels.rows(split) for split in SHOWN])
    with closing(Ledger(ledger, clock=time.time)) as book:
        door = LabelDoor(
            tuple(map(str, labels.ids.take(rows))),
            labels.labels[rows],
            num_classes=len(labels.classes),
            epsilon=epsilon,
            ledger=book,
            noise=noise,
            kept=kept_beside(ledger),
        )
        return Responses(door.responses(), epsilon)


def kept_beside(ledger: Path) -> Path:
    """Folder of the responses that a ledger was charged for."""
    return ledger.with_name(f"{ledger.name}.responses")
