"""A peer that says anything at any time: one clear error, no hang, and the ledger does not move.

An honest conversation is recorded once. Then one end goes through it again against a script that
plays the other end and departs from the record at one frame: at every frame, in every way.
"""

import random
import struct
import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import InputError, PeerError, PeerLostError, RemoteProtocolError, VesperError
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import LabelHoldings, open_labels
from vesper.mechanism.noise import NoiseSource
from vesper.method.settings import Config
from vesper.privacy.ledger import Ledger
from vesper.protocol.codec import KINDS, MAGIC, decode, encode
from vesper.protocol.messages import (
    DataHello,
    Embeddings,
    Farewell,
    Gradients,
    LabelHello,
    Message,
    Purpose,
    Received,
    Roster,
    Verdict,
)
from vesper.protocol.rounding import Rounding, Wire
from vesper.protocol.turns import Role
from vesper.run.config import load_config
from vesper.run.contract import canonical
from vesper.run.data_end import data_end
from vesper.run.doors import open_door
from vesper.run.label_end import label_end
from vesper.run.link import Link
from vesper.run.opening import PROTOCOL_VERSION
from vesper.transport.channel import Channel
from vesper.transport.memory import memory_pair

NODES, EPOCHS, STEPS, PATIENCE = 60, 3, 2, 1
SETTINGS = {
    "epochs": EPOCHS,
    "patience": PATIENCE,
    "batch_size": 10,
    "hops": 1,
    "width": 4,
    "seed": 5,
}
LARGE = 1_000_000
BOUND = 20_000_000
"""Bytes that a frame of a few megabytes may make an end take."""
NUMBERS = count()


class Script:
    """A peer that sends these frames, one each time it is waited for, and then is gone."""

    def __init__(self, frames: Sequence[bytes], waited: Callable[[int], object] = int) -> None:
        self._frames, self._waited, self.taken = frames, waited, 0
        self.sent: list[bytes] = []

    def send(self, frame: bytes) -> None:
        self.sent.append(frame)

    def receive(self) -> bytes:
        self._waited(self.taken)
        if self.taken == len(self._frames):
            raise PeerLostError("the peer is gone")
        self.taken += 1
        return self._frames[self.taken - 1]

    def close(self) -> None:
        return


@dataclass(frozen=True)
class Ended:
    """How one end came out of it."""

    error: VesperError | None
    frames: list[bytes]
    """That it sent."""
    taken: int
    """Frames that it took from the peer."""
    charges: int = 0


@dataclass(frozen=True)
class Parties:
    """What both hold."""

    folder: Path
    config: Config
    data: DataHoldings
    labels: LabelHoldings

    def data_party(self, frames: Sequence[bytes]) -> Ended:
        """Be the data party, with a charged door; any error but ours is a bug and goes through."""
        script, error = Script(frames), None
        path = self.folder / f"{next(NUMBERS)}.sqlite"
        with closing(Ledger(path, clock=lambda: 0.0)) as ledger:
            try:
                self.talk_as_data(script, ledger)
            except VesperError as caught:
                error = caught
            charges = charges_in(ledger)
        path.unlink()
        return Ended(error, script.sent, script.taken, charges)

    def talk_as_data(self, channel: Channel, ledger: Ledger) -> None:
        noise = NoiseSource.for_simulation(1)
        prepare = partial(open_door, graph=self.data.graph, ledger=ledger, noise=noise, run="r")
        link = Link(Role.DATA, channel)
        data_end(self.config, self.data, link, prepare=prepare)
        link.expect(Farewell)

    def label_party(self, frames: Sequence[bytes]) -> Ended:
        """Be the label party."""
        script, error = Script(frames), None
        try:
            label_end(self.config, self.labels, Link(Role.LABEL, script))
        except VesperError as caught:
            error = caught
        return Ended(error, script.sent, script.taken)


@dataclass(frozen=True)
class Recorded(Parties):
    """And what they said when both were honest."""

    of_data: tuple[bytes, ...]
    of_label: tuple[bytes, ...]
    charges: dict[int, int]
    """Of the data party, by how many stages it has begun."""


class Tapped:
    """A channel that notes what is sent."""

    def __init__(self, inner: Channel) -> None:
        self._inner, self.sent = inner, list[bytes]()

    def send(self, frame: bytes) -> None:
        self.sent.append(frame)
        self._inner.send(frame)

    def receive(self) -> bytes:
        return self._inner.receive()

    def close(self) -> None:
        self._inner.close()


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(tmp_path_factory.mktemp("honest"), wire="float32")


@pytest.fixture(scope="module")
def rounded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(tmp_path_factory.mktemp("rounded"), wire="int8")


@pytest.fixture(params=["honest", "rounded"])
def either(request: pytest.FixtureRequest) -> Recorded:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Recorded)
    return found


def recorded(folder: Path, *, wire: str) -> Recorded:
    """Let two honest parties meet."""
    chance = np.random.default_rng(0)
    classes = np.arange(NODES) // 3 % 3
    (folder / "data").mkdir()
    (folder / "label").mkdir()
    columns = {f"f{k}": chance.normal(size=NODES) + (classes == k) for k in range(3)}
    pq.write_table(pa.table({"id": range(NODES), **columns}), folder / "data" / "nodes.parquet")
    pairs = {"src": range(NODES), "dst": [(k + 3) % NODES for k in range(NODES)]}
    pq.write_table(pa.table(pairs), folder / "data" / "edges.parquet")
    splits = [("train", "val", "test")[k % 3] for k in range(NODES)]
    table = {"id": range(NODES), "label": classes, "split": splits}
    pq.write_table(pa.table(table), folder / "label" / "labels.parquet")
    config = load_config(None, {**SETTINGS, "wire": wire})
    data, labels = open_data(folder / "data"), open_labels(folder / "label")
    parties = Parties(folder, config, data, labels)
    data_channel, label_channel = (Tapped(end) for end in memory_pair(patience=60))
    charges: dict[int, int] = {}
    with (
        closing(Ledger(folder / "honest.sqlite", clock=lambda: 0.0)) as ledger,
        ThreadPoolExecutor(1) as pool,
    ):
        answering = pool.submit(label_end, config, labels, Link(Role.LABEL, label_channel))
        parties.talk_as_data(data_channel, ledger)
        answering.result()
        sent, received = tuple(data_channel.sent), tuple(label_channel.sent)
    with closing(Ledger(folder / "again.sqlite", clock=lambda: 0.0)) as ledger:

        def note(taken: int) -> None:
            stage = stages_begun(received[:taken])
            charges[stage] = max(charges.get(stage, 0), charges_in(ledger))

        parties.talk_as_data(Script(received, note), ledger)
    return Recorded(folder, config, data, labels, sent, received, charges)


def charges_in(ledger: Ledger) -> int:
    return sum(entry.cost > 0 for entry in ledger.entries())


def stages_begun(frames: Sequence[bytes]) -> int:
    """How many stages an honest data party has begun after these frames of its peer."""
    messages = [decode(frame) for frame in frames[2:]]  # hello and roster
    stage, epoch, steps, is_measuring = 0, 0, 0, False
    for message in messages:
        if isinstance(message, Gradients):
            steps += 1
        elif is_measuring:
            stage, epoch, is_measuring = stage + 1, 0, False
        elif isinstance(message, Received):
            assert steps == STEPS
            epoch, steps = epoch + 1, 0
            is_measuring = epoch == EPOCHS or message.verdict is Verdict.STOP
    return stage + 1 if len(frames) >= 2 else 0


def check_data_party(honest: Recorded, frames: Sequence[bytes]) -> Ended:
    """Let the data party meet these frames; the ledger may have what the accepted ones warrant."""
    ended = honest.data_party(frames)
    accepted = frames[: ended.taken - isinstance(ended.error, RemoteProtocolError)]
    assert ended.charges <= honest.charges[min(stages_begun(accepted), max(honest.charges))]
    return ended


# The record itself.


def test_the_record_can_be_played_again(either: Recorded) -> None:
    honest = either
    ended = check_data_party(honest, honest.of_label)
    assert ended.error is None
    assert ended.charges == max(honest.charges.values()) > honest.charges[0] == 0
    assert tuple(ended.frames) == honest.of_data
    answered = honest.label_party(honest.of_data)
    assert answered.error is None
    assert tuple(answered.frames) == honest.of_label
    verdicts = [m.verdict for m in map(decode, honest.of_label) if isinstance(m, Received)]
    assert Verdict.STOP in verdicts  # else nothing below tells when stopping is allowed


# Any frame, anything wrong with its bytes or its turn.


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
def test_wrong_bytes_and_wrong_turns_at_the_data_party(honest: Recorded, few: bool) -> None:
    chance, frames = random.Random(1), honest.of_label
    for at in range(len(frames)):
        bad = wrong_bytes(frames[at], chance) + wrong_turn(frames, at, chance)
        bad += [honest.of_data[0], honest.of_data[-1], honest.of_data[2]]  # what only we may say
        for frame in chance.sample(bad, 2) if few and at > 1 else bad:
            ended = check_data_party(honest, [*frames[:at], frame, *frames[at + 1 :]])
            assert isinstance(ended.error, RemoteProtocolError), (at, frame[:80])
            assert ended.taken == at + 1
            assert "\n" not in str(ended.error)


@FEW
def test_wrong_bytes_and_wrong_turns_at_the_label_party(honest: Recorded, few: bool) -> None:
    chance, frames = random.Random(2), honest.of_data
    for at in range(len(frames)):
        bad = wrong_bytes(frames[at], chance) + wrong_turn(frames, at, chance)
        bad += [honest.of_label[0], honest.of_label[1], honest.of_label[-1]]
        for frame in chance.sample(bad, 2) if few and at > 1 else bad:
            ended = honest.label_party([*frames[:at], frame, *frames[at + 1 :]])
            assert isinstance(ended.error, RemoteProtocolError), (at, frame[:80])
            assert ended.taken == at + 1
            assert "\n" not in str(ended.error)


@given(st.integers(0, 10**9))
def test_seeded_mutations(rounded: Recorded, seed: int) -> None:
    """Flip, drop, repeat, swap: an error of ours, or a message that might as well be honest."""
    chance, honest = random.Random(seed), rounded
    for original, check in (
        (honest.of_label, partial(check_data_party, honest)),
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
        ended = check(frames)
        if way != "flip" and frames != list(original) and len(frames) >= len(original):
            assert ended.error is not None or ended.taken < len(frames)


def test_a_silent_peer_is_given_up(honest: Recorded) -> None:
    channel, _ = memory_pair(patience=0.05)
    with closing(Ledger(honest.folder / "silent.sqlite", clock=lambda: 0.0)) as ledger:
        with pytest.raises(PeerLostError, match="silent for"):
            honest.talk_as_data(channel, ledger)
        assert charges_in(ledger) == 0
    with pytest.raises(PeerLostError, match="silent for"):
        label_end(honest.config, honest.labels, Link(Role.LABEL, channel))


# Messages that are well written and wrong.

Wrong = Callable[[Any], Any]


def but(**fields: Any) -> Wrong:
    """The same message with other fields."""
    return lambda message: type(message)(**{**vars(message), **fields})


def scripted(
    honest: Recorded, frames: Sequence[bytes], kind: type[Message], wrong: Wrong, number: int = 0
) -> tuple[list[bytes], int]:
    """The record with one message of a kind changed, and its position."""
    at = [k for k, frame in enumerate(frames) if isinstance(decode(frame), kind)][number]
    rounding = Rounding(Wire[honest.config.run.wire.upper()])
    return [*frames[:at], encode(wrong(decode(frames[at])), rounding), *frames[at + 1 :]], at


def shaped(*shape: int) -> Wrong:
    return but(values=np.ones(shape, dtype=np.float32))


def filled(value: float) -> Wrong:
    return lambda message: but(values=np.full_like(message.values, value))(message)


def with_voices(change: Callable[[Any], Any]) -> Wrong:
    return lambda roster: but(voices=change(roster.voices).astype(np.float32))(roster)


def first_row(value: float) -> Callable[[Any], Any]:
    def change(voices: Any) -> Any:
        return np.concatenate([np.full((1, voices.shape[1]), value), voices[1:]])

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
        *((Roster, with_voices(first_row(value)), 0) for value in (3e38, -1.0, 1.0, 0.0)),
        (Roster, with_voices(lambda voices: voices[:0]), 0),
        (Roster, with_voices(lambda voices: voices[1:]), 0),
        (Roster, with_voices(lambda voices: voices[:, 1:]), 0),
        (Roster, with_voices(lambda voices: voices[:, :, None]), 0),
        *((Gradients, but(step=step), 0) for step in (0, -1, 2, 1 << 62)),
        (Gradients, but(step=1), 1),
        *((Gradients, shaped(*shape), 1) for shape in ((10, 3), (3, 10, 2), (1, 1, 1), (0, 3, 2))),
        (Gradients, shaped(10, 3, 3), 1),
        *((Received, but(step=step), 0) for step in (0, 2, 1 << 62)),
        (Received, but(verdict=Verdict.GO_ON), 0),  # the patience is one epoch
        (Received, but(verdict=Verdict.BEST), -1),  # nothing is judged any more
        (Received, but(verdict=Verdict.STOP), -1),
    ],
)
def test_the_data_party_refuses(
    honest: Recorded, kind: type[Message], wrong: Wrong, number: int
) -> None:
    frames, at = scripted(honest, honest.of_label, kind, wrong, number)
    ended = check_data_party(honest, frames)
    assert isinstance(ended.error, PeerError)
    assert isinstance(ended.error, RemoteProtocolError) or "version" in str(ended.error)
    assert ended.taken == at + 1


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
    honest: Recorded, kind: type[Message], wrong: Wrong, number: int
) -> None:
    frames, at = scripted(honest, honest.of_data, kind, wrong, number)
    ended = honest.label_party(frames)
    assert isinstance(ended.error, RemoteProtocolError)
    assert ended.taken == at + 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_none(either: Recorded, bad: float) -> None:
    honest = either
    ends: list[tuple[tuple[bytes, ...], type[Message], Callable[[list[bytes]], Ended]]] = [
        (honest.of_data, Embeddings, honest.label_party),
        (honest.of_label, Gradients, partial(check_data_party, honest)),
    ]
    for frames, kind, play in ends:
        at = [k for k, frame in enumerate(frames) if isinstance(decode(frame), kind)][1]
        frame = encode(filled(bad)(decode(frames[at])))  # float32, whatever was agreed
        ended = play([*frames[:at], frame, *frames[at + 1 :]])
        assert isinstance(ended.error, RemoteProtocolError)
        assert ended.taken == at + 1


@pytest.mark.parametrize("size", [3e37])
def test_huge_values_are_learnt_from_or_end_the_run(honest: Recorded, size: float) -> None:
    """They are finite, so nobody can tell that they are wrong; nothing but our errors follows."""
    for number in (0, STEPS):
        wrong = filled(size)
        check_data_party(honest, scripted(honest, honest.of_label, Gradients, wrong, number)[0])
        honest.label_party(scripted(honest, honest.of_data, Embeddings, wrong, number)[0])


def test_other_settings_are_named(honest: Recorded) -> None:
    other = canonical(load_config(None, {**SETTINGS, "width": 5}))
    frames, _ = scripted(honest, honest.of_label, LabelHello, but(contract=other))
    ended = check_data_party(honest, frames)
    assert isinstance(ended.error, InputError)
    assert "run.width: 4 here, 5 there" in str(ended.error)


# Frames that would take much memory.


def roster_of_nothing(ids: int) -> bytes:
    """A roster of so many empty ids."""
    kind = bytes([KINDS.index(Roster)])
    return MAGIC + kind + struct.pack("<I", ids) + bytes(4 * ids + 8) + b"\0\2" + bytes(8)


@pytest.mark.parametrize(
    ("at", "frame"),
    [
        (0, encode(LabelHello(version=3, contract="x" * 4 * LARGE, num_outputs=3))),
        (1, roster_of_nothing(LARGE)),
        (1, encode(Roster(("x" * 4 * LARGE,), (), (), np.zeros((0, 3), dtype=np.float32)))),
        (1, encode(Roster(("0",), ("1",), (), np.zeros((LARGE, 3), dtype=np.float32)))),
        (2, MAGIC + b"\4" + struct.pack("<qBB3I", 1, 0, 3, 1 << 27, 1, 1)),
        (2, MAGIC + b"\4" + struct.pack("<qBB3I", 1, 2, 3, 1, 1 << 27, 1)),
        (2, MAGIC + b"\4" + struct.pack("<qBB3I", 1, 2, 3, 0, 1 << 14, 1 << 14)),
    ],
    ids=["contract", "ids", "id", "voices", "gradients", "scales", "no rows"],
)
def test_memory(honest: Recorded, at: int, frame: bytes) -> None:
    frames = [*honest.of_label[:at], frame]
    honest.data_party(frames)  # whatever is made once is there
    tracemalloc.start()
    try:
        ended = check_data_party(honest, frames)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(ended.error, RemoteProtocolError)
    assert ended.taken == at + 1
    assert peak < BOUND


# A method that pays before its first batch.


def test_nothing_is_charged_before_the_roster_is_accepted(honest: Recorded) -> None:
    config = load_config(None, {**SETTINGS, "method": "edgerand", "label_messages": True})
    parties = replace(honest, config=config)
    hello = encode(LabelHello(PROTOCOL_VERSION, canonical(config), num_outputs=3))
    roster = decode(honest.of_label[1])
    for wrong in (but(train=()), but(test=("nobody",)), with_voices(first_row(9.0))):
        ended = parties.data_party([hello, encode(wrong(roster))])
        assert isinstance(ended.error, RemoteProtocolError)
        assert ended.charges == 0
    ended = parties.data_party([hello, honest.of_label[1]])
    assert isinstance(ended.error, PeerLostError)
    assert ended.charges == 1
