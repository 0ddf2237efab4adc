"""A checkpoint is written once everything before it is on disk, and restores that state."""

import os
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from vesper.errors import PeerLostError, VesperError
from vesper.session.checkpoint import FileCheckpoints, Position
from vesper.transport.channel import Channel
from vesper.transport.durable_channel import DurableChannel
from vesper.transport.frame_log import FrameLog
from vesper.transport.transcript import Transcript


def nobody(limit: float | None) -> Channel:
    raise PeerLostError("nobody is there")


def channel_in(folder: Path) -> DurableChannel:
    return DurableChannel(
        nobody, folder, names_session=True, directions=("a", "b"), reconnects=False
    )


def test_loading_a_checkpoint_rewinds_the_channel(tmp_path: Path) -> None:
    path, position = tmp_path / "checkpoint.npz", Position(stage=1, epoch=2, step=30)
    with closing(channel_in(tmp_path)) as channel:
        channel.rewind_to((4, 5))
        FileCheckpoints(path, channel).save(position, {"weights": np.arange(3.0)})
    with closing(channel_in(tmp_path)) as channel:
        loaded = FileCheckpoints(path, channel).load()
        assert loaded is not None
        assert loaded[0] == position
        assert loaded[1]["weights"].tolist() == [0, 1, 2]
        assert channel.counts == (4, 5)


def test_frames_are_on_disk_before_and_discarded_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a power cut could leave a checkpoint that needs frames nobody has."""
    order: list[str] = []
    sync, flush, start_segment, replace = (
        FrameLog.sync,
        Transcript.flush,
        FrameLog.start_segment,
        os.replace,
    )
    for owner, name, real in (
        (FrameLog, "sync", sync),
        (Transcript, "flush", flush),
        (FrameLog, "start_segment", start_segment),
        (os, "replace", replace),
    ):

        def recorded(*args: object, _name: str = name, _real: object = real) -> None:
            order.append(_name)
            assert callable(_real)
            _real(*args)

        monkeypatch.setattr(owner, name, recorded)
    with closing(channel_in(tmp_path)) as channel:
        order.clear()
        FileCheckpoints(tmp_path / "checkpoint.npz", channel).save(Position(0, 0, 0), {})
    assert sorted(order[:2]) == ["flush", "sync"]
    assert order[2:] == ["replace", "start_segment"]


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    path.write_bytes(b"PK\3\4 and no more")
    with (
        closing(channel_in(tmp_path)) as channel,
        pytest.raises(VesperError, match="cannot be read"),
    ):
        FileCheckpoints(path, channel).load()
