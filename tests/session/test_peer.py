"""What each party accepts from the other one, message by message."""

from collections.abc import Iterator

import numpy as np
import pytest

from vesper.errors import RemoteProtocolError
from vesper.protocol.codec import encode
from vesper.protocol.messages import (
    Embeddings,
    EvaluationReply,
    Gradients,
    Message,
    Purpose,
    Verdict,
)
from vesper.protocol.turns import Role, TrainingState, TurnChecker
from vesper.session.peer import Link, RemoteDataParty, RemoteLabelParty
from vesper.transport.channel import MAX_FRAME_BYTES
from vesper.transport.close_reason import CloseReason
from vesper.transport.memory import MemoryChannel, memory_pair

VALUES = np.ones((2, 3, 1), dtype=np.float32)
ROOTS = np.arange(2)
SHAPE = (3, 1)
BEST, CONTINUE, STOP = Verdict.BEST, Verdict.CONTINUE, Verdict.STOP


def ready(
    role: Role, state: TrainingState, monkeypatch: pytest.MonkeyPatch
) -> tuple[Link, MemoryChannel]:
    """Make a link whose opening is over, and the peer's end of it."""
    ours, theirs = memory_pair(patience=1)

    class Opened(TurnChecker):
        def __init__(self, role: Role, *rest: object) -> None:
            super().__init__(role)
            self.state = state

    monkeypatch.setattr("vesper.session.peer.TurnChecker", Opened)
    return Link(role, ours), theirs


def embeddings(step: int, purpose: Purpose = Purpose.EVALUATE) -> Embeddings:
    return Embeddings(step=step, purpose=purpose, roots_digest=bytes(16), values=VALUES)


def epochs(
    verdicts: list[Verdict], monkeypatch: pytest.MonkeyPatch, *, patience: int, blocks: int = 1
) -> list[Verdict]:
    """Let the label party send these verdicts, one per block of each epoch."""
    link, peer = ready(Role.DATA, TrainingState.READY, monkeypatch)
    party = RemoteLabelParty(link, patience=patience)
    for step, verdict in enumerate(verdicts):
        peer.send(encode(EvaluationReply(step=step, verdict=verdict)))
    steps = iter(range(len(verdicts)))

    def validation() -> Iterator[Embeddings]:
        return (embeddings(next(steps)) for _ in range(blocks))

    return [party.request_verdict(validation()) for _ in range(len(verdicts) // blocks)]


@pytest.mark.parametrize(
    "verdicts",
    [
        [BEST, BEST, CONTINUE, BEST],
        [BEST, CONTINUE, STOP],
        [CONTINUE, STOP],
        [CONTINUE, BEST, CONTINUE, STOP],
    ],
)
def test_verdicts_that_follow_from_the_patience(
    verdicts: list[Verdict], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert epochs(verdicts, monkeypatch, patience=2) == verdicts


@pytest.mark.parametrize(
    "verdicts", [[STOP], [BEST, STOP], [CONTINUE, CONTINUE], [BEST, CONTINUE, CONTINUE]]
)
def test_verdicts_that_contradict_the_patience(
    verdicts: list[Verdict], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RemoteProtocolError, match=r"with a patience of 2"):
        epochs(verdicts, monkeypatch, patience=2)


def test_the_count_of_epochs_survives_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    link, peer = ready(Role.DATA, TrainingState.READY, monkeypatch)
    party = RemoteLabelParty(link, patience=2)
    party.load_state_arrays({"peer/waited": np.array(1)})
    assert int(party.state_arrays()["peer/waited"]) == 1
    peer.send(encode(EvaluationReply(step=1, verdict=STOP)))
    assert party.request_verdict(iter([embeddings(1)])) is STOP


@pytest.mark.parametrize("verdicts", [[STOP, CONTINUE], [BEST, BEST]])
def test_no_verdict_before_all_blocks_were_seen(
    verdicts: list[Verdict], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RemoteProtocolError, match="although none is due"):
        epochs(verdicts, monkeypatch, patience=2, blocks=2)
    assert epochs([CONTINUE, BEST], monkeypatch, patience=2, blocks=2) == [BEST]


@pytest.mark.parametrize("verdict", [BEST, STOP])
def test_held_out_embeddings_get_no_verdict(
    verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, peer = ready(Role.DATA, TrainingState.READY, monkeypatch)
    peer.send(encode(EvaluationReply(step=1, verdict=verdict)))
    with pytest.raises(RemoteProtocolError, match="although none is due"):
        RemoteLabelParty(link, patience=1).send_held_out(iter([embeddings(1)]))


@pytest.mark.parametrize(
    "reply", [Gradients(step=4, values=VALUES), Gradients(step=-1, values=VALUES)]
)
def test_gradients_of_another_step(reply: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    link, peer = ready(Role.DATA, TrainingState.READY, monkeypatch)
    peer.send(encode(reply))
    with pytest.raises(RemoteProtocolError, match="expected step 5"):
        RemoteLabelParty(link, patience=1).learn(embeddings(5, Purpose.TRAIN))


def test_steps_of_embeddings_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    link, peer = ready(Role.LABEL, TrainingState.READY, monkeypatch)
    party = RemoteDataParty(link, SHAPE)
    party.load_state_arrays({"peer/step": np.array(6)})
    peer.send(encode(embeddings(7)))
    assert party.receive_embeddings(ROOTS, Purpose.EVALUATE).step == 7
    assert int(party.state_arrays()["peer/step"]) == 7
    link.send(EvaluationReply(step=7, verdict=CONTINUE))
    peer.send(encode(embeddings(7)))
    with pytest.raises(RemoteProtocolError, match="the peer sent step 7, expected step 8"):
        party.receive_embeddings(ROOTS, Purpose.EVALUATE)


@pytest.mark.parametrize("purpose", Purpose)
def test_embeddings_of_the_other_purpose(purpose: Purpose, monkeypatch: pytest.MonkeyPatch) -> None:
    link, peer = ready(Role.LABEL, TrainingState.READY, monkeypatch)
    peer.send(encode(embeddings(1, purpose)))
    with pytest.raises(RemoteProtocolError, match="expected embeddings with purpose"):
        RemoteDataParty(link, SHAPE).receive_embeddings(ROOTS, Purpose(1 - purpose))


class LimitNoting:
    """A channel that notes the limits that it is given."""

    def __init__(self, *frames: bytes) -> None:
        self.limits: list[int] = []
        self._frames = iter(frames)

    def send(self, frame: bytes) -> None:
        self.last_sent = frame

    def receive(self, limit: int = MAX_FRAME_BYTES) -> bytes:
        self.limits.append(limit)
        return next(self._frames)

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        return


@pytest.mark.parametrize(
    ("state", "limit"),
    [
        (TrainingState.DATA_HELLO, 1 << 19),
        (TrainingState.LABEL_HELLO, 1 << 19),
        (TrainingState.FAREWELL, 1 << 8),
    ],
)
def test_the_state_limits_the_frame_before_it_is_held(
    state: TrainingState, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = LimitNoting(encode(embeddings(1)))
    role = Role.LABEL if state is TrainingState.DATA_HELLO else Role.DATA
    ready(role, state, monkeypatch)
    with pytest.raises(RemoteProtocolError):
        Link(role, channel).receive()
    assert channel.limits == [limit]


@pytest.mark.parametrize("wire", ["float32", "float16", "int8"])
def test_the_shape_that_is_due_limits_embeddings_and_gradients(
    wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready(Role.LABEL, TrainingState.READY, monkeypatch)
    sender, channel = Link(Role.DATA, LimitNoting()), LimitNoting()
    sender._channel = channel
    sender.set_wire_format(wire, seed=1)
    values = np.ones((500, 7, 3), dtype=np.float32)
    sender.send(Embeddings(step=1, purpose=Purpose.TRAIN, roots_digest=bytes(16), values=values))
    arriving = LimitNoting(channel.last_sent)
    link = Link(Role.LABEL, arriving)
    link.set_wire_format(wire, seed=1)
    roots = np.arange(500)
    assert RemoteDataParty(link, (7, 3)).receive_embeddings(roots, Purpose.TRAIN).step == 1
    assert len(channel.last_sent) <= arriving.limits[0] <= 4 * values.size + 2000

    ready(Role.DATA, TrainingState.READY, monkeypatch)
    channel = LimitNoting(encode(Gradients(step=1, values=values)))
    sent = Embeddings(step=1, purpose=Purpose.TRAIN, roots_digest=bytes(16), values=values)
    RemoteLabelParty(Link(Role.DATA, channel), patience=1).learn(sent)
    verdict_channel = LimitNoting(encode(EvaluationReply(step=1, verdict=CONTINUE)))
    ready(Role.DATA, TrainingState.READY, monkeypatch)
    party = RemoteLabelParty(Link(Role.DATA, verdict_channel), patience=1)
    party.send_held_out(iter([embeddings(1)]))
    assert channel.limits[0] <= 4 * values.size + 2000
    assert verdict_channel.limits == [1 << 8]
