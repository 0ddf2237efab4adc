import pytest

from vesper.errors import PeerError
from vesper.transport.memory import memory_pair


def test_frames_arrive_in_order_in_both_directions() -> None:
    one, other = memory_pair()
    for frame in (b"a", b"", b"c"):
        one.send(frame)
    other.send(b"back")
    assert [other.receive() for _ in range(3)] == [b"a", b"", b"c"]
    assert one.receive() == b"back"


def test_a_close_is_raised_after_the_last_frame() -> None:
    one, other = memory_pair()
    one.send(b"last")
    one.close()
    assert other.receive() == b"last"
    for _ in range(2):
        with pytest.raises(PeerError, match="closed"):
            other.receive()
    with pytest.raises(PeerError, match="closed"):
        one.send(b"more")


def test_silence_beyond_the_patience_is_an_error() -> None:
    one, _ = memory_pair(patience=0.01)
    with pytest.raises(PeerError, match=r"silent for 0\.01 s"):
        one.receive()
