"""Well-formed messages with wrong contents: each is refused with a specific error."""

import struct
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from vesper.errors import InputError, PeerError, PeerLostError, RemoteProtocolError
from vesper.protocol.codec import KINDS, MAGIC, decode, encode
from vesper.protocol.messages import (
    DataHello,
    Embeddings,
    EvaluationReply,
    Gradients,
    LabelHello,
    Message,
    Purpose,
    Roster,
    Verdict,
)
from vesper.protocol.rounding import Rounding, WireFormat
from vesper.session.contract import contract_text
from vesper.session.peer import PROTOCOL_VERSION

if TYPE_CHECKING:
    from tests.security.conftest import Outcome, Recorded


NODES, STEPS = 60, 2
LARGE = 1_000_000
BOUND = 20_000_000
"""Most bytes that a party may allocate for a frame of a few megabytes."""


# Well-formed messages with wrong contents.

Wrong = Callable[[Any], Any]


def but(**fields: Any) -> Wrong:
    """The same message with some fields replaced."""
    return lambda message: type(message)(**{**vars(message), **fields})


def scripted(
    honest: "Recorded", frames: Sequence[bytes], kind: type[Message], wrong: Wrong, number: int = 0
) -> tuple[list[bytes], int]:
    """The recording with one message of a kind changed, and its position."""
    at = [k for k, frame in enumerate(frames) if isinstance(decode(frame), kind)][number]
    rounding = Rounding(WireFormat[honest.config.run.wire.upper()])
    return [*frames[:at], encode(wrong(decode(frames[at])), rounding), *frames[at + 1 :]], at


def shaped(*shape: int) -> Wrong:
    return but(values=np.ones(shape, dtype=np.float32))


def filled(value: float) -> Wrong:
    return lambda message: but(values=np.full_like(message.values, value))(message)


def with_label_posteriors(change: Callable[[Any], Any]) -> Wrong:
    return lambda roster: but(label_posteriors=change(roster.label_posteriors).astype(np.float32))(
        roster
    )


def first_row(value: float) -> Callable[[Any], Any]:
    def change(label_posteriors: Any) -> Any:
        return np.concatenate(
            [np.full((1, label_posteriors.shape[1]), value), label_posteriors[1:]]
        )

    return change


@pytest.mark.parametrize(
    ("kind", "wrong", "number"),
    [
        *((LabelHello, but(num_outputs=n), 0) for n in (0, -1, (1 << 16) + 1, 1 << 62)),
        (LabelHello, but(version=1), 0),
        *((LabelHello, but(contract=text), 0) for text in ("", "[" * 9999, "{}x", "x" * 70_000)),
        (Roster, but(train=()), 0),
        (Roster, but(val=()), 0),
        (Roster, lambda m: but(train=(*m.train[1:], "nobody"))(m), 0),
        (Roster, lambda m: but(train=(*m.train[1:], ""))(m), 0),
        (Roster, lambda m: but(train=(*m.train[1:], m.train[0] + "\0"))(m), 0),
        (Roster, lambda m: but(train=(*m.train[1:], "9" * 30))(m), 0),
        (Roster, lambda m: but(train=(*m.train[1:], m.val[0]))(m), 0),
        (Roster, lambda m: but(test=(*m.test, m.test[0]))(m), 0),
        (Roster, lambda m: but(train=m.train[1:])(m), 0),
        *((Roster, with_label_posteriors(first_row(value)), 0) for value in (3e38, -1.0, 1.0, 0.0)),
        (Roster, with_label_posteriors(lambda label_posteriors: label_posteriors[:0]), 0),
        (Roster, with_label_posteriors(lambda label_posteriors: label_posteriors[1:]), 0),
        (Roster, with_label_posteriors(lambda label_posteriors: label_posteriors[:, 1:]), 0),
        (Roster, with_label_posteriors(lambda label_posteriors: label_posteriors[:, :, None]), 0),
        *((Gradients, but(step=step), 0) for step in (0, -1, 2, 1 << 62)),
        (Gradients, but(step=1), 1),
        *((Gradients, shaped(*shape), 1) for shape in ((10, 3), (3, 10, 2), (1, 1, 1), (0, 3, 2))),
        (Gradients, shaped(10, 3, 3), 1),
        *((EvaluationReply, but(step=step), 0) for step in (0, 2, 1 << 62)),
        (EvaluationReply, but(verdict=Verdict.CONTINUE), 0),  # the patience is one epoch
        (EvaluationReply, but(verdict=Verdict.BEST), -1),  # too late for a verdict
        (EvaluationReply, but(verdict=Verdict.STOP), -1),
    ],
)
def test_the_data_party_refuses(
    honest: "Recorded", kind: type[Message], wrong: Wrong, number: int
) -> None:
    frames, at = scripted(honest, honest.of_label, kind, wrong, number)
    outcome = honest.checked(frames)
    assert isinstance(outcome.error, PeerError)
    assert isinstance(outcome.error, RemoteProtocolError) or "version" in str(outcome.error)
    assert outcome.taken == at + 1


@pytest.mark.parametrize(
    ("kind", "wrong", "number"),
    [
        *((DataHello, but(num_nodes=n), 0) for n in (0, -5, NODES - 1, 1 << 41)),
        *((DataHello, but(num_features=n), 0) for n in (0, -1, 1 << 31, 1 << 62)),
        (DataHello, but(contract="null"), 0),
        *((Embeddings, but(step=step), 0) for step in (0, -1, 2, 1 << 62)),
        (Embeddings, but(purpose=Purpose.EVALUATE), 1),
        (Embeddings, but(purpose=Purpose.TRAIN), STEPS),
        *((Embeddings, but(roots_digest=digest), 1) for digest in (b"", bytes(16), bytes(5000))),
        *((Embeddings, shaped(*shape), 1) for shape in ((10, 4, 2), (10, 3, 1), (9, 3, 2))),
        *((Embeddings, shaped(*shape), 0) for shape in ((10, 1, 2), (10, 3), (), (10, 3, 3))),
        *((Embeddings, shaped(*shape), STEPS) for shape in ((20, 4, 2), (1, 3, 2), (0, 3, 2))),
    ],
)
def test_the_label_party_refuses(
    honest: "Recorded", kind: type[Message], wrong: Wrong, number: int
) -> None:
    frames, at = scripted(honest, honest.of_data, kind, wrong, number)
    outcome = honest.label_party(frames)
    assert isinstance(outcome.error, RemoteProtocolError)
    assert outcome.taken == at + 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(either: "Recorded", bad: float) -> None:
    honest = either
    ends: list[tuple[tuple[bytes, ...], type[Message], Callable[[list[bytes]], Outcome]]] = [
        (honest.of_data, Embeddings, honest.label_party),
        (honest.of_label, Gradients, honest.checked),
    ]
    for frames, kind, play in ends:
        at = [k for k, frame in enumerate(frames) if isinstance(decode(frame), kind)][1]
        frame = encode(filled(bad)(decode(frames[at])))  # float32, whatever the wire format
        outcome = play([*frames[:at], frame, *frames[at + 1 :]])
        assert isinstance(outcome.error, RemoteProtocolError)
        assert outcome.taken == at + 1


@pytest.mark.parametrize("size", [3e37])
def test_huge_finite_values_do_no_more_than_end_the_run(honest: "Recorded", size: float) -> None:
    """Finite values cannot be recognised as wrong; at most a VesperError may follow."""
    for number in (0, STEPS):
        wrong = filled(size)
        honest.checked(scripted(honest, honest.of_label, Gradients, wrong, number)[0])
        honest.label_party(scripted(honest, honest.of_data, Embeddings, wrong, number)[0])


def test_other_settings_are_named(honest: "Recorded") -> None:
    other = contract_text(honest.other(width=5))
    frames, _ = scripted(honest, honest.of_label, LabelHello, but(contract=other))
    outcome = honest.checked(frames)
    assert isinstance(outcome.error, InputError)
    assert "run.width: 4 here, 5 there" in str(outcome.error)


# Frames that could make the receiver allocate much memory.


def roster_of_empty_ids(ids: int) -> bytes:
    """A roster of this many empty ids."""
    kind = bytes([KINDS.index(Roster)])
    return MAGIC + kind + struct.pack("<I", ids) + bytes(4 * ids + 8) + b"\0\2" + bytes(8)


@pytest.mark.parametrize(
    ("at", "frame"),
    [
        (0, encode(LabelHello(version=3, contract="x" * 4 * LARGE, num_outputs=3))),
        (1, roster_of_empty_ids(LARGE)),
        (1, encode(Roster(("x" * 4 * LARGE,), (), (), np.zeros((0, 3), dtype=np.float32)))),
        (1, encode(Roster(("0",), ("1",), (), np.zeros((LARGE, 3), dtype=np.float32)))),
        (2, MAGIC + b"\4" + struct.pack("<qBB3I", 1, 0, 3, 1 << 27, 1, 1)),
        (2, MAGIC + b"\4" + struct.pack("<qBB3I", 1, 2, 3, 1, 1 << 27, 1)),
        (2, MAGIC + b"\4" + struct.pack("<qBB3I", 1, 2, 3, 0, 1 << 14, 1 << 14)),
    ],
    ids=["contract", "ids", "id", "label_posteriors", "gradients", "scales", "no rows"],
)
def test_memory_is_bounded(honest: "Recorded", at: int, frame: bytes) -> None:
    frames = [*honest.of_label[:at], frame]
    honest.data_party(frames)  # so that one-time allocations are not measured
    tracemalloc.start()
    try:
        outcome = honest.checked(frames)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(outcome.error, RemoteProtocolError)
    assert outcome.taken == at + 1
    assert peak < BOUND


# A method that charges before its first batch.


def test_nothing_is_charged_before_the_roster_is_accepted(honest: "Recorded") -> None:
    config = honest.other(method="edgerand", label_messages=True)
    parties = replace(honest, config=config)
    hello = encode(LabelHello(PROTOCOL_VERSION, contract_text(config), num_outputs=3))
    roster = decode(honest.of_label[1])
    for wrong in (but(train=()), but(test=("nobody",)), with_label_posteriors(first_row(9.0))):
        outcome = parties.data_party([hello, encode(wrong(roster))])
        assert isinstance(outcome.error, RemoteProtocolError)
        assert outcome.charges == 0
    outcome = parties.data_party([hello, honest.of_label[1]])
    assert isinstance(outcome.error, PeerLostError)
    assert outcome.charges == 1
