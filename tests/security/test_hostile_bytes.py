"""Wrong bytes, wrong turns, silence: one clear error, no hang, and an unchanged ledger."""

import random
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import PeerLostError, RemoteProtocolError
from vesper.privacy.ledger.store import Ledger
from vesper.protocol.codec import MAGIC, decode
from vesper.protocol.messages import EvaluationReply, Verdict
from vesper.protocol.turns import Role
from vesper.session.label_side import DataPeer, run_label_session
from vesper.session.peer import Link
from vesper.transport.close_reason import CloseReason, error_for_close_reason
from vesper.transport.memory import memory_pair

if TYPE_CHECKING:
    from tests.security.conftest import Outcome, Recorded


LARGE = 1_000_000


# The recording itself.


def test_the_recording_can_be_replayed(either: "Recorded") -> None:
    honest = either
    data_outcome = honest.checked(honest.of_label)
    assert data_outcome.error is None
    assert data_outcome.charges == max(honest.charges.values()) > honest.charges[0] == 0
    assert tuple(data_outcome.frames) == honest.of_data
    label_outcome = honest.label_party(honest.of_data)
    assert label_outcome.error is None
    assert tuple(label_outcome.frames) == honest.of_label
    verdicts = [m.verdict for m in map(decode, honest.of_label) if isinstance(m, EvaluationReply)]
    assert Verdict.STOP in verdicts  # otherwise early stopping would not be tested below


# Any frame with wrong bytes or out of turn.


def wrong_bytes(frame: bytes, chance: random.Random) -> list[bytes]:
    """Ways to break a frame beyond repair."""
    return [
        frame[: chance.randrange(len(frame))],
        frame + bytes([chance.randrange(256)]),
        b"",
        chance.randbytes(40),
        MAGIC + bytes([255]) + frame[5:],
        b"X" + frame[1:],
        frame + bytes(LARGE),
    ]


def wrong_turn(frames: Sequence[bytes], at: int, chance: random.Random) -> list[bytes]:
    """Frames of another kind than that at this position, or of another step."""
    others = [other for other in frames if other[:5] != frames[at][:5]]
    steps = [other for other in frames if other[:5] == frames[at][:5] and other != frames[at]]
    picked = {other[4]: other for other in chance.sample(others, len(others))}  # one of each kind
    return [*picked.values(), *steps[:1], *steps[-1:]]


FEW = pytest.mark.parametrize("few", [True, pytest.param(False, marks=pytest.mark.nightly)])


@FEW
def test_wrong_bytes_and_wrong_turns_at_the_data_party(honest: "Recorded", few: bool) -> None:
    chance, frames = random.Random(1), honest.of_label
    for at in range(len(frames)):
        bad = wrong_bytes(frames[at], chance) + wrong_turn(frames, at, chance)
        # Messages that only the data party may send.
        bad += [honest.of_data[0], honest.of_data[-1], honest.of_data[2]]
        for frame in chance.sample(bad, 2) if few and at > 1 else bad:
            outcome = honest.checked([*frames[:at], frame, *frames[at + 1 :]])
            assert isinstance(outcome.error, RemoteProtocolError), (at, frame[:80])
            assert outcome.taken == at + 1
            assert "\n" not in str(outcome.error)


@FEW
def test_wrong_bytes_and_wrong_turns_at_the_label_party(honest: "Recorded", few: bool) -> None:
    chance, frames = random.Random(2), honest.of_data
    for at in range(len(frames)):
        bad = wrong_bytes(frames[at], chance) + wrong_turn(frames, at, chance)
        bad += [honest.of_label[0], honest.of_label[1], honest.of_label[-1]]
        for frame in chance.sample(bad, 2) if few and at > 1 else bad:
            outcome = honest.label_party([*frames[:at], frame, *frames[at + 1 :]])
            assert isinstance(outcome.error, RemoteProtocolError), (at, frame[:80])
            assert outcome.taken == at + 1
            assert "\n" not in str(outcome.error)


@given(st.integers(0, 10**9))
def test_seeded_mutations(rounded: "Recorded", seed: int) -> None:
    """Flip, drop, repeat or swap: a VesperError, or a message that could be honest."""
    chance, honest = random.Random(seed), rounded
    for original, check in (
        (honest.of_label, honest.checked),
        (honest.of_data, honest.label_party),
    ):
        frames = list(original)
        at = chance.randrange(len(frames))
        way = chance.choice(["flip", "flip", "flip", "drop", "repeat", "swap"])
        if way == "flip":
            changed = bytearray(frames[at])
            for _ in range(chance.choice([1, 1, 4])):
                changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
            frames[at] = bytes(changed)
        elif way == "drop":
            del frames[at]
        elif way == "repeat":
            frames.insert(at, frames[at])
        else:
            other = chance.randrange(len(frames))
            frames[at], frames[other] = frames[other], frames[at]
        outcome = check(frames)
        if way != "flip" and frames != list(original) and len(frames) >= len(original):
            assert outcome.error is not None or outcome.taken < len(frames)


def test_a_peer_may_close_with_any_reason_at_any_moment(honest: "Recorded") -> None:
    chance = random.Random(3)
    ends: list[tuple[tuple[bytes, ...], Callable[..., Outcome]]] = [
        (honest.of_label, honest.checked),
        (honest.of_data, honest.label_party),
    ]
    for frames, check in ends:
        for at in range(0, len(frames), 3):
            close_reason = chance.choice(list(CloseReason))
            outcome = check(frames[:at], close_reason=close_reason)
            assert str(outcome.error) == str(error_for_close_reason(close_reason, "the peer"))


def test_a_silent_peer_times_out(honest: "Recorded") -> None:
    channel, _ = memory_pair(patience=0.05)
    with closing(Ledger(honest.folder / "silent.sqlite", clock=lambda: 0.0)) as ledger:
        with pytest.raises(PeerLostError, match="silent for"):
            honest.run_as_data_party(channel, ledger)
        assert not any(entry.cost > 0 for entry in ledger.entries())
    with pytest.raises(PeerLostError, match="silent for"):
        run_label_session([DataPeer(honest.config, Link(Role.LABEL, channel))], honest.labels)
