"""Private set intersection by the optional library, where it is installed."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from vesper.deployment.alignment import private_intersection
from vesper.deployment.alignment.align import AlignmentHello, align_data, align_labels
from vesper.deployment.alignment.private_intersection import (
    intersect_as_data,
    intersect_as_label,
    refuse_without_library,
)
from vesper.errors import InputError, RemoteProtocolError
from vesper.graph.ids import Ids
from vesper.transport.channel import MAX_FRAME_BYTES
from vesper.transport.close_reason import CloseReason
from vesper.transport.memory import MemoryChannel

if TYPE_CHECKING:
    from tests.deployment.alignment.conftest import Hostile, RunBoth

needs_library = pytest.mark.skipif(
    importlib.util.find_spec("private_set_intersection") is None,
    reason="needs openmined.psi, of the extra 'psi', which is not installed",
)


class Recorder:
    """A channel that records what is sent."""

    def __init__(self, channel: MemoryChannel) -> None:
        self._channel = channel
        self.sent: list[bytes] = []

    def send(self, frame: bytes) -> None:
        self.sent.append(frame)
        self._channel.send(frame)

    def receive(self, limit: int = MAX_FRAME_BYTES) -> bytes:
        return self._channel.receive(limit)

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        self._channel.close(why)


def texts(values: Sequence[str]) -> Ids:
    return Ids(pa.array(values, type=pa.large_string()))


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"--private: expected the extra 'psi'.*pip install"):
        refuse_without_library()


@needs_library
def test_common_ids_and_no_others(run_both: "RunBoth", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_intersection, "BLOCK", 4)
    refuse_without_library()
    nodes, labels = [f"n{k}" for k in range(30)], [f"n{k}" for k in range(20, 41)]
    _, common = run_both(
        lambda end: intersect_as_data(end, nodes, num_labels=len(labels)),
        lambda end: intersect_as_label(end, labels, num_nodes=len(nodes)),
    )
    assert [labels[k] for k in common] == [f"n{k}" for k in range(20, 30)]


@needs_library
def test_alignment_of_the_common_ids(run_both: "RunBoth") -> None:
    recorders: list[Recorder] = []

    def recorded(end: MemoryChannel) -> Recorder:
        recorders.append(Recorder(end))
        return recorders[-1]

    data, label = run_both(
        lambda end: align_data(recorded(end), texts(["secret-node", "b", "a"]), private=True),
        lambda end: align_labels(
            recorded(end), texts(["b", "secret-label", "a"]), path=Path("l"), private=True
        ),
    )
    assert data.ids.to_pylist() == label.ids.to_pylist() == ["a", "b"]
    assert data.proof == label.proof
    assert data.private
    frames = b"".join(frame for recorder in recorders for frame in recorder.sent)
    assert b"secret" not in frames


@needs_library
def test_nothing_in_common(run_both: "RunBoth") -> None:
    both = run_both(
        lambda end: align_data(end, texts(["a"]), private=True),
        lambda end: align_labels(end, texts(["b"]), path=Path("l"), private=True),
    )
    for error in both:
        assert isinstance(error, InputError)
        assert "no id in common" in str(error)


OPENING = AlignmentHello(nonce=bytes(32), count=1, private=True).to_bytes()
NO_POINT = b"\x08\x01\x12\x04abcd"


@needs_library
@pytest.mark.parametrize("frame", [b"", b"\xff" * 40, NO_POINT, b"\x08\x01", bytes(100)])
def test_a_hostile_label_party(run_both: "RunBoth", hostile: "Hostile", frame: bytes) -> None:
    data, _ = run_both(
        lambda end: align_data(end, texts(["a"]), private=True), hostile(OPENING, frame)
    )
    assert isinstance(data, RemoteProtocolError)


@needs_library
@pytest.mark.parametrize(
    "frames", [[b"", b""], [b"\xff" * 40], [b"", b"\x0a\x04abcd"], [bytes(9), bytes(9)]]
)
def test_a_hostile_data_party(run_both: "RunBoth", hostile: "Hostile", frames: list[bytes]) -> None:
    _, label = run_both(
        hostile(OPENING, *frames),
        lambda end: align_labels(end, texts(["a"]), path=Path("l"), private=True),
    )
    assert isinstance(label, RemoteProtocolError)
