"""A frame that the session refuses is not logged; a frame that cannot come is not waited for."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from vesper.errors import PeerError, RemoteProtocolError, VesperError
from vesper.transport.close_reason import CloseReason
from vesper.transport.durable_channel import DurableChannel
from vesper.transport.frame_log import RECEIVED, FrameLog
from vesper.transport.memory import MemoryChannel, memory_pair
from vesper.transport.reconnect import write_session_name
from vesper.transport.session_greeting import NO_SESSION_ID, SessionGreeting, read_greeting

SESSION = b"1" * 16


def channel_over(
    folder: Path, *channels: MemoryChannel, names_session: bool = True
) -> DurableChannel:
    """A durable channel over these connections."""
    folder.mkdir(exist_ok=True)
    ours = iter(channels)
    return DurableChannel(
        lambda limit: next(ours),
        folder,
        names_session=names_session,
        directions=("a", "b"),
        reconnects=True,
    )


def test_a_refused_frame_is_discarded_and_another_may_be_received(tmp_path: Path) -> None:
    for answer, why in ((b"bad", CloseReason.PROTOCOL), (b"good", CloseReason.DONE)):
        ours, theirs = memory_pair(patience=5)
        theirs.send(SessionGreeting(SESSION, received=0, sent=1).to_bytes())
        theirs.send(answer)
        channel = channel_over(tmp_path / "label", ours, names_session=False)
        assert channel.receive() == answer
        channel.close(why)
        assert read_greeting(theirs.receive()).is_blank
    again = channel_over(tmp_path / "label", names_session=False)
    assert again.receive() == b"good"  # from the log, without a connection
    again.close()
    lines = (tmp_path / "label" / "transcript.tsv").read_text().splitlines()
    assert [line.split("\t")[2] for line in lines] == ["4"]


def test_a_process_that_dies_while_handling_a_frame_has_not_logged_it(tmp_path: Path) -> None:
    ours, theirs = memory_pair(patience=5)
    theirs.send(SessionGreeting(SESSION, received=0, sent=1).to_bytes())
    theirs.send(b"bad")
    channel = channel_over(tmp_path / "label", ours, names_session=False)
    assert channel.receive() == b"bad"
    killed = shutil.copytree(tmp_path / "label", tmp_path / "killed")  # as kill -9 leaves it
    with closing(FrameLog(killed / "frames")) as log:
        assert log.count(RECEIVED) == 0
    channel.close()


@pytest.mark.parametrize("way", ["send", "receive", "flush", "close"])
def test_a_frame_that_the_session_continues_from_is_logged(tmp_path: Path, way: str) -> None:
    ours, theirs = memory_pair(patience=5)
    theirs.send(SessionGreeting(SESSION, received=0, sent=2).to_bytes())
    for frame in (b"one", b"two"):
        theirs.send(frame)
    channel = channel_over(tmp_path / "label", ours, names_session=False)
    assert channel.receive() == b"one"
    if way == "send":
        channel.send(b"answer")
    elif way == "receive":
        channel.receive()
    elif way == "flush":
        channel.flush_received()
        assert channel.counts == (0, 1)
    if way != "close":
        channel.close(CloseReason.USER)
    else:
        channel.close()
    with closing(FrameLog(tmp_path / "label" / "frames")) as log:
        assert [log.frame(RECEIVED, number) for number in range(2)] == [b"one", None]


def test_rewinding_to_a_checkpoint_leaves_no_frame_to_count(tmp_path: Path) -> None:
    ours, theirs = memory_pair(patience=5)
    theirs.send(SessionGreeting(SESSION, received=0, sent=1).to_bytes())
    theirs.send(b"opening")
    with closing(channel_over(tmp_path / "label", ours, names_session=False)) as channel:
        channel.receive()
        channel.rewind_to((4, 7))
        channel.send(b"answer")
        assert channel.counts == (5, 7)


def test_a_peer_that_has_more_frames_than_possible_is_not_waited_for(tmp_path: Path) -> None:
    """Our log may be short after a restart, but then the answers of the peer fill it up."""
    (tmp_path / "data").mkdir()
    write_session_name(tmp_path / "data" / "session", SESSION)
    ours, theirs = memory_pair(patience=5)
    theirs.send(SessionGreeting(SESSION, received=9, sent=3).to_bytes())
    with closing(channel_over(tmp_path / "data", ours)) as channel:
        channel.rewind_to((3, 3))
        channel.connect_now()
        with pytest.raises(VesperError, match="the peer has 9 frames, this side is at 3"):
            channel.refuse_stale_copy()
        channel.send(b"question 3")
        with pytest.raises(RemoteProtocolError, match=r"reports 9 frames, but .* no more than 4"):
            channel.receive()


def test_two_sides_that_both_wait_for_the_other_to_start_are_refused(tmp_path: Path) -> None:
    ours, theirs = memory_pair(patience=5)
    theirs.send(SessionGreeting(NO_SESSION_ID, received=0, sent=0).to_bytes())
    with (
        closing(channel_over(tmp_path / "label", ours, names_session=False)) as channel,
        pytest.raises(PeerError, match="neither side starts a session"),
    ):
        channel.receive()
