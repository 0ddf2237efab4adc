"""Responses to the labels of training and validation nodes, where the contract protects labels.

They are drawn before anything is sent, charged to the label party's ledger, and kept: whatever
becomes of the run, another one on the same labels has them for nothing.
"""

import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from vesper.graph.labels import LabelHoldings
from vesper.mechanism.label_door import LabelDoor, Named
from vesper.mechanism.noise import NoiseSource
from vesper.method.settings import Config
from vesper.model.objectives import Responses
from vesper.privacy.ledger import Ledger
from vesper.run.agreement import refuse_unusable_labels

STREAM = 1 << 63
"""Added to the seed, which is below: responses do not share bits with the noise of sums."""

SHOWN = ("train", "val")
"""Splits of which something crosses; labels of test nodes never do."""


def responses_of(
    config: Config,
    labels: LabelHoldings,
    *,
    ledger: Ledger,
    noise: NoiseSource,
    named: Named = lambda name: None,
) -> Responses | None:
    """Give the responses, drawn now or kept beside the ledger; None where labels are open.

    `named` is told the name of the table before anything is charged, and may refuse.

    Raises:
        InputError: these labels cannot be used, or have another budget in this ledger.
    """
    epsilon = config.privacy.label_epsilon
    if epsilon is None:
        return None
    refuse_unusable_labels(config, labels)  # before anything is charged
    rows = np.concatenate([labels.rows(split) for split in SHOWN])
    door = LabelDoor(
        tuple(map(str, labels.ids.take(rows))),
        labels.labels[rows],
        num_classes=len(labels.classes),
        epsilon=epsilon,
        ledger=ledger,
        noise=noise,
        kept=kept_beside(ledger.path),
        named=named,
    )
    return Responses(door.responses(), epsilon)


def charged_responses(
    config: Config, labels: LabelHoldings, *, path: Path | None, noise: NoiseSource
) -> Responses | None:
    """Give the responses, charged to the ledger in this file."""
    if config.privacy.label_epsilon is None:
        return None
    assert path is not None, "a party's settings were checked for it"
    with closing(Ledger(path, clock=time.time)) as ledger:
        return responses_of(config, labels, ledger=ledger, noise=noise)


def simulated_responses(
    config: Config, labels: LabelHoldings, *, path: Path | None = None
) -> Responses | None:
    """Give responses drawn from the seed; None as path: charged to a ledger that goes away."""
    noise = NoiseSource.for_simulation(config.run.seed + STREAM)
    with tempfile.TemporaryDirectory(prefix="vesper-") as folder:
        path = path or Path(folder) / "ledger.sqlite"
        return charged_responses(config, labels, path=path, noise=noise)


def kept_beside(ledger: Path) -> Path:
    """Folder of the responses that a ledger was charged for."""
    return ledger.with_name(f"{ledger.name}.responses")
