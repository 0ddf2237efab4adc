"""A peer that says anything at any time: one clear error, no hang, and the ledger does not move.

An honest conversation is recorded once. Then one end goes through it again against a script that
plays the other end and departs from the record at one frame, at every frame, in every way.
"""

import random
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import PeerError, PeerLostError, RemoteProtocolError, VesperError
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import LabelHoldings, open_labels
from vesper.mechanism.noise import NoiseSource
from vesper.method.settings import Config
from vesper.privacy.ledger import Ledger
from vesper.protocol.codec import KINDS, decode, encode
from vesper.protocol.messages import (
    DataHello,
    Embeddings,
    Farewell,
    Finished,
    Gradients,
    LabelHello,
    Message,
    Purpose,
    Received,
    Roster,
    Verdict,
)
from vesper.protocol.turns import Role
from vesper.run.agreement import agree
from vesper.run.config import load_config
from vesper.run.data_end import data_end
from vesper.run.doors import open_door
from vesper.run.label_end import label_end
from vesper.run.link import Link
from vesper.run.roster import refuse_outputs
from vesper.transport.memory import memory_pair

NODES, EPOCHS, STEPS = 60, 2, 2
SETTINGS = {"epochs": EPOCHS, "width": 4, "batch_size": 10, "hops": 1, "patience": 1, "seed": 5}
NAMES = count()


class Script:
    """A peer that sends these frames, one each time it is waited for, and then is silent."""

    def __init__(self, frames: list[bytes]) -> None:
        self.sent: list[bytes] = []
        self._frames, self.taken = frames, 0

    def send(self, frame: bytes) -> None:
        self.sent.append(frame)

    def receive(self) -> bytes:
        if self.taken == len(self._frames):
            raise PeerLostError("the peer was silent")
        self.taken += 1
        return self._frames[self.taken - 1]

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Honest:
    """What both parties hold, and what they said to each other when both were honest."""

    folder: Path
    config: Config
    data: DataHoldings
    labels: LabelHoldings
    of_data: list[bytes]
    of_label: list[bytes]

    def charged(self, frames: list[bytes], channel: Script | None = None) -> tuple[int, Script]:
        """Be the data party; give the charges, whatever happens."""
        script = channel or Script(frames)
        path = self.folder / f"{next(NAMES)}.sqlite"
        with closing(Ledger(path, clock=lambda: 0.0)) as ledger:
            try:
                self.as_data(script, ledger)
            except VesperError as error:
                script.error = error  # type: ignore[attr-defined]
            charges = sum(entry.cost > 0 for entry in ledger.entries())
        path.unlink()
        return charges, script
