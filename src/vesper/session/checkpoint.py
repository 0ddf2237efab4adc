"""Checkpoint of a session: one file per side, replaced atomically at each epoch.

    checkpoint = position (stage, epoch, step), frames sent and received so far, arrays of the party

It contains neither the ledger nor any noise or its source: going back to a checkpoint returns no
budget, and releases come from the release store.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from zipfile import BadZipFile

import numpy as np

from vesper.errors import VesperError
from vesper.files import read_arrays, replacement_of
from vesper.party.state import Arrays
from vesper.transport.durable_channel import DurableChannel


@dataclass(frozen=True)
class Position:
    """Start of an epoch: stage, epoch, and number of training steps before it."""

    stage: int
    epoch: int
    step: int


START_POSITION = Position(0, 0, 0)


class Checkpoints(Protocol):
    """Store of the last checkpoint of a session."""

    def load(self) -> tuple[Position, Arrays] | None:
        """Go back to the last checkpoint; None if there is none."""

    def save(self, position: Position, arrays: Arrays) -> None:
        """Make this the last checkpoint."""


class NoCheckpoints:
    """No checkpoints, for sessions in one process, which always start from the beginning."""

    def load(self) -> None:
        """Return None."""

    def save(self, position: Position, arrays: Arrays) -> None:
        """Do nothing."""


class FileCheckpoints:
    """The last checkpoint in a file, and the channels that are rewound with it, one per peer."""

    def __init__(self, path: Path, *channels: DurableChannel) -> None:
        self._path, self._channels = path, channels

    def load(self) -> tuple[Position, Arrays] | None:
        """Read the file and rewind the channels to it.

        Raises:
            VesperError: the file cannot be read.
        """
        if not self._path.exists():
            if any(channel.has_checkpoints for channel in self._channels):
                raise VesperError(
                    f"{self._path}: expected the last checkpoint of this run, found none; restore "
                    f"it, or begin a new run on both sides"
                )
            return None
        try:
            arrays = read_arrays(self._path)
            stage, epoch, step, *counts = (int(n) for n in arrays.pop("position"))
            pairs = list(zip(counts[::2], counts[1::2], strict=True))
            if len(pairs) != len(self._channels):
                raise ValueError(f"expected {len(self._channels)} peers, found {len(pairs)}")
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise VesperError(
                f"{self._path}: cannot be read ({error}); restore it, or begin a new run"
            ) from None
        for channel, frame_counts in zip(self._channels, pairs, strict=True):
            channel.rewind_to(frame_counts)
        return Position(stage, epoch, step), arrays

    def save(self, position: Position, arrays: Arrays) -> None:
        """Write the file once every received frame is on disk; then discard older frames."""
        where = [position.stage, position.epoch, position.step]
        for channel in self._channels:
            channel.flush_received()
            where += channel.counts
        try:
            with replacement_of(self._path) as file:
                np.savez(file, allow_pickle=False, position=np.array(where), **arrays)
        except OSError as error:
            raise VesperError(
                f"{self._path}: cannot be written ({error.strerror}); free some space, then "
                f"continue with --resume"
            ) from None
        for channel in self._channels:
            channel.mark_checkpoint()
