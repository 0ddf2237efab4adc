"""Several data parties joined into one, message by message."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fixtures.observers import CallingObserver

from vesper.errors import InputError, PeerLostError, PeerStoppedError, RemoteProtocolError
from vesper.party.state import Arrays
from vesper.protocol.fields import digest_of_roots
from vesper.protocol.messages import Embeddings, Gradients, Purpose, Verdict
from vesper.session.peer_group import Absence, DataPeerGroup, GroupMember

ROOTS = np.array([4, 1])
SHAPES = {"one": (2, 2), "two": (3, 1)}


class Scripted:
    """A data party that sends its step number everywhere, until it is gone."""

    def __init__(self, shape: tuple[int, int], error: Exception | None = None) -> None:
        self.shape, self.error = shape, error
        self.gone_at: tuple[str, int] | None = None
        self.step = 0
        self.received: list[object] = []

    def _fail(self, what: str) -> None:
        if self.gone_at == (what, self.step) and self.error is not None:
            raise self.error

    def state_arrays(self) -> Arrays:
        return {"peer/step": np.array(self.step)}

    def load_state_arrays(self, arrays: Arrays) -> None:
        self.step = int(arrays["peer/step"])

    def receive_embeddings(self, roots: NDArray[np.int64], purpose: Purpose) -> Embeddings:
        self.step += 1
        self._fail("embeddings")
        values = np.full((len(roots), *self.shape), self.step, dtype=np.float32)
        return Embeddings(
            step=self.step, purpose=purpose, roots_digest=digest_of_roots(roots), values=values
        )

    def learn(self, gradients: Gradients) -> None:
        self._fail("learn")
        self.received.append(gradients)

    def send_verdict(self, step: int, verdict: Verdict) -> None:
        self._fail("verdict")
        self.received.append((step, verdict))

    def begin_stage(self, stage: int) -> None:
        self.received.append(stage)

    def finish(self) -> None:
        self.received.append("finished")


class All(DataPeerGroup):
    """A group of two parties that records who leaves, and warnings."""

    def __init__(self, parties: Sequence[Scripted], absences: Sequence[Absence | None]) -> None:
        self.left: list[tuple[int, int]] = []
        self.warnings: list[str] = []
        members = [
            GroupMember(name, party, SHAPES[name], absence)
            for name, party, absence in zip(SHAPES, parties, absences, strict=True)
        ]
        super().__init__(
            members,
            num_rows=6,
            leave=lambda k, stage: self.left.append((k, stage)),
            observer=CallingObserver(warning=self.warnings.append),
        )


def both(**scripts: tuple[str, int]) -> tuple[All, dict[str, Scripted], dict[str, Absence]]:
    """Make a group of two parties; a party with a script is lost there, and may leave."""
    parties = {
        name: Scripted(shape, PeerLostError(f"{name} is cut off")) for name, shape in SHAPES.items()
    }
    absences = {name: Absence() for name in scripts}
    for name, script in scripts.items():
        parties[name].gone_at = script
    together = All(list(parties.values()), [absences.get(name) for name in parties])
    return together, parties, absences


def test_embeddings_are_joined_and_gradients_are_split() -> None:
    together, parties, _ = both()
    parties["two"].step = 10
    joined = together.receive_embeddings(ROOTS, Purpose.TRAIN)
    assert joined.step == 1
    assert joined.roots_digest == digest_of_roots(ROOTS)
    assert joined.values[0, :, 0].tolist() == [1, 1, 1, 1, 11, 11, 11]
    values = np.arange(14, dtype=np.float32).reshape(2, 7, 1)
    together.learn(Gradients(step=1, values=values))
    first, second = (party.received[0] for party in parties.values())
    assert isinstance(first, Gradients)
    assert isinstance(second, Gradients)
    assert (first.step, second.step) == (1, 11)
    assert first.values.tolist() == [[[0, 1], [2, 3]], [[7, 8], [9, 10]]]
    assert second.values[:, :, 0].tolist() == [[4, 5, 6], [11, 12, 13]]
    together.receive_embeddings(ROOTS, Purpose.EVALUATE)
    together.send_verdict(2, Verdict.BEST)
    assert [party.received[1] for party in parties.values()] == [
        (2, Verdict.BEST),
        (12, Verdict.BEST),
    ]
    together.finish()
    assert all(party.received[-1] == "finished" for party in parties.values())


def test_the_last_embeddings_of_a_lost_party_are_used_again() -> None:
    together, parties, absences = both(two=("embeddings", 3))
    together.begin_stage(0)
    for roots in (ROOTS, np.array([1, 0])):
        together.receive_embeddings(roots, Purpose.TRAIN)
        together.learn(Gradients(step=1, values=np.zeros((2, 7, 1), dtype=np.float32)))
    together.begin_stage(1)
    joined = together.receive_embeddings(np.array([4, 1, 5]), Purpose.TRAIN)
    assert joined.values[:, 4, 0].tolist() == [1, 2, 0]  # as last sent; row 5 was never sent
    assert joined.values[:, 0, 0].tolist() == [3, 3, 3]
    assert together.left == [(1, 0)]
    assert together.lost_peers == ["two"]
    assert together.warnings == [
        "two is cut off; continuing without two, with what it has sent so far"
    ]
    assert absences["two"].covers(3)
    assert not absences["two"].covers(2)
    together.learn(Gradients(step=3, values=np.zeros((3, 7, 1), dtype=np.float32)))
    together.finish()
    assert (len(parties["one"].received), len(parties["two"].received)) == (4, 2)


@pytest.mark.parametrize("what", ["learn", "verdict"])
def test_a_party_lost_before_the_answer_is_absent_one_step_later(what: str) -> None:
    together, _, absences = both(two=(what, 1))
    together.receive_embeddings(ROOTS, Purpose.TRAIN)
    if what == "learn":
        together.learn(Gradients(step=1, values=np.zeros((2, 7, 1), dtype=np.float32)))
    else:
        together.send_verdict(1, Verdict.CONTINUE)
    assert not absences["two"].covers(1)
    assert absences["two"].covers(2)
    assert together.left == []
    joined = together.receive_embeddings(ROOTS, Purpose.TRAIN)
    assert joined.values[0, :, 0].tolist() == [2, 2, 2, 2, 1, 1, 1]
    assert together.left == [(1, 0)]


def test_a_resumed_group_continues_the_same_way() -> None:
    together, _, _ = both(two=("embeddings", 3))
    for _ in range(2):
        together.receive_embeddings(ROOTS, Purpose.TRAIN)
    arrays = together.state_arrays()
    expected = [together.receive_embeddings(ROOTS, Purpose.TRAIN).values for _ in range(2)]
    again, parties, absences = both(two=("embeddings", 99))
    absences["two"].start(3)  # as it was stored
    again.load_state_arrays(arrays)
    found = [again.receive_embeddings(ROOTS, Purpose.TRAIN).values for _ in range(2)]
    assert all(np.array_equal(one, other) for one, other in zip(expected, found, strict=True))
    assert parties["two"].step == 2
    after, parties, _ = both(two=("embeddings", 99))
    after.load_state_arrays(together.state_arrays())
    assert after.lost_peers == ["two"]
    assert after.left == [(1, 0)]


def test_losing_a_party_that_the_run_needs_ends_it() -> None:
    together, parties, _ = both(two=("embeddings", 99))
    parties["one"].gone_at = ("embeddings", 1)
    with pytest.raises(PeerLostError, match="one is cut off"):
        together.receive_embeddings(ROOTS, Purpose.TRAIN)


@pytest.mark.parametrize("what", ["embeddings", "learn"])
def test_the_last_party_cannot_be_continued_without(what: str) -> None:
    together, _, absences = both(one=(what, 1), two=("embeddings", 2))
    together.receive_embeddings(ROOTS, Purpose.TRAIN)
    together.learn(Gradients(step=1, values=np.zeros((2, 7, 1), dtype=np.float32)))
    with pytest.raises(PeerLostError, match="two is cut off"):
        together.receive_embeddings(ROOTS, Purpose.TRAIN)
    assert not absences["two"].has_started  # it may come back, and the run can be resumed


def test_continuing_without_a_party_needs_its_stored_embeddings() -> None:
    together, _, _ = both()
    together.receive_embeddings(ROOTS, Purpose.TRAIN)
    again, _, _ = both(two=("embeddings", 99))
    with pytest.raises(InputError, match="when_lost of two: expected what this run began with"):
        again.load_state_arrays(together.state_arrays())


def test_embeddings_are_persisted_once_they_are_checked() -> None:
    persisted: list[str] = []
    parties = {name: Scripted(shape) for name, shape in SHAPES.items()}
    members = [
        GroupMember(name, party, SHAPES[name], persist_received=partial(persisted.append, name))
        for name, party in parties.items()
    ]
    together = DataPeerGroup(members, num_rows=6, leave=lambda k, stage: None)
    together.receive_embeddings(ROOTS, Purpose.TRAIN)
    assert persisted == ["one", "two"]
    parties["two"].shape = (3, 2)
    with pytest.raises(RemoteProtocolError) as refused:
        together.receive_embeddings(ROOTS, Purpose.TRAIN)
    assert persisted == ["one", "two", "one"]
    assert refused.value.party_name == "two"


def test_a_party_that_breaks_the_protocol_ends_the_run() -> None:
    together, parties, _ = both(two=("embeddings", 1))
    parties["two"].error = RemoteProtocolError("nonsense")
    with pytest.raises(RemoteProtocolError):
        together.receive_embeddings(ROOTS, Purpose.TRAIN)
    together, parties, _ = both(two=("embeddings", 1))
    parties["two"].error = PeerStoppedError("its budget is spent")
    together.receive_embeddings(ROOTS, Purpose.TRAIN)
    assert together.lost_peers == ["two"]


def test_embeddings_of_other_roots_or_shapes_are_refused() -> None:
    together, parties, _ = both()
    parties["two"].shape = (3, 2)
    with pytest.raises(RemoteProtocolError, match=r"expected embeddings of shape \(2, 3, 1\), two"):
        together.receive_embeddings(ROOTS, Purpose.TRAIN)

    class Others(Scripted):
        def receive_embeddings(self, roots: NDArray[np.int64], purpose: Purpose) -> Embeddings:
            return super().receive_embeddings(roots[::-1], purpose)

    wrong = All([Others(SHAPES["one"]), Scripted(SHAPES["two"])], [None, None])
    with pytest.raises(RemoteProtocolError, match="one sent embeddings of other roots"):
        wrong.receive_embeddings(ROOTS, Purpose.TRAIN)
