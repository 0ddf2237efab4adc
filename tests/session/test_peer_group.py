"""Several data parties as one, message by message."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fixtures.observers import CallingObserver

from vesper.errors import InputError, PeerLostError, PeerStoppedError, RemoteProtocolError
from vesper.party.state import Arrays
from vesper.protocol.messages import Embeddings, Gradients, Purpose, Verdict
from vesper.protocol.fields import digest_of_roots
from vesper.session.peer_group import Absence, DataPeerGroup, GroupMember

ROOTS = np.array([4, 1])
SHAPES = {"one": (2, 2), "two": (3, 1)}


class Scripted:
    """A data party that sends its step number everywhere, until it is gone."""

    def __init__(self, shape: tuple[int, int], error: Exception | None = None) -> None:
        self.shape, self.error = shape, error
        self.gone_at: tuple[str, int] | None = None
        self.step = 0
        self.heard: list[object] = []

    def _fail(self, what: str) -> None:
        if self.gone_at == (what, self.step) and self.error is not None:
            raise self.error

    def state_arrays(self) -> Arrays:
        return {"peer/step": np.array(self.step)}

    def load_state_arrays(self, arrays: Arrays) -> None:
        self.step = int(arrays["peer/step"])

    def receive_embeddings(self, roots: NDArray[np.int64], purpose: Purpose) -> Embeddings:
        self.step += 1
        self._fail("release")
        values = np.full((len(roots), *self.shape), self.step, dtype=np.float32)
        return Embeddings(
            step=self.step, purpose=purpose, roots_digest=digest_of_roots(roots), values=values
        )

    def learn(self, gradients: Gradients) -> None:
        self._fail("learn")
        self.heard.append(gradients)

    def send_verdict(self, step: int, verdict: Verdict) -> None:
        self._fail("hear")
        self.heard.append((step, verdict))

    def begin_stage(self, stage: int) -> None:
        self.heard.append(stage)

    def finish(self) -> None:
        self.heard.append("finished")


class All(DataPeerGroup):
    """Two of them; what happens is noted."""

    def __init__(self, parties: Sequence[Scripted], absences: Sequence[Absence | None]) -> None:
        self.left: list[tuple[int, int]] = []  # as told
        self.said: list[str] = []
        members = [
            GroupMember(name, party, SHAPES[name], absence)
            for name, party, absence in zip(SHAPES, parties, absences, strict=True)
        ]
        super().__init__(
            members,
            num_rows=6,
            leave=lambda k, stage: self.left.append((k, stage)),
            observer=CallingObserver(warning=self.said.append),
        )


def both(**scripts: tuple[str, int]) -> tuple[All, dict[str, Scripted], dict[str, Absence]]:
    """Two parties; those with a script are lost there, and may leave."""
    parties = {
        name: Scripted(shape, PeerLostError(f"{name} is cut off")) for name, shape in SHAPES.items()
    }
    absences = {name: Absence() for name in scripts}
    for name, script in scripts.items():
        parties[name].gone_at = script
    together = All(list(parties.values()), [absences.get(name) for name in parties])
    return together, parties, absences


def test_embeddings_stand_side_by_side_and_gradients_go_apart() -> None:
    together, parties, _ = both()
    parties["two"].step = 10
    came = together.receive_embeddings(ROOTS, Purpose.TRAIN)
    assert came.step == 1
    assert came.roots_digest == digest_of_roots(ROOTS)
    assert came.values[0, :, 0].tolist() == [1, 1, 1, 1, 11, 11, 11]
    values = np.arange(14, dtype=np.float32).reshape(2, 7, 1)
    together.learn(Gradients(step=1, values=values))
    first, second = (party.heard[0] for party in parties.values())
    assert isinstance(first, Gradients)
    assert isinstance(second, Gradients)
    assert (first.step, second.step) == (1, 11)
    assert first.values.tolist() == [[[0, 1], [2, 3]], [[7, 8], [9, 10]]]
    assert second.values[:, :, 0].tolist() == [[4, 5, 6], [11, 12, 13]]
    together.receive_embeddings(ROOTS, Purpose.EVALUATE)
    together.send_verdict(2, Verdict.BEST)
    assert [party.heard[1] for party in parties.values()] == [(2, Verdict.BEST), (12, Verdict.BEST)]
    together.finish()
    assert all(party.heard[-1] == "finished" for party in parties.values())


def test_a_lost_party_is_answered_for_from_what_it_sent() -> None:
    together, parties, absences = both(two=("release", 3))
    together.begin_stage(0)
    for roots in (ROOTS, np.array([1, 0])):
        together.receive_embeddings(roots, Purpose.TRAIN)
        together.learn(Gradients(step=1, values=np.zeros((2, 7, 1), dtype=np.float32)))
    together.begin_stage(1)
    came = together.receive_embeddings(np.array([4, 1, 5]), Purpose.TRAIN)
    assert came.values[:, 4, 0].tolist() == [1, 2, 0]  # as sent last; row 5 was never sent
    assert came.values[:, 0, 0].tolist() == [3, 3, 3]
    assert together.left == [(1, 0)]
    assert together.lost_peers == ["two"]
    assert together.said == ["two is cut off; continuing without two, with what it has sent so far"]
    assert absences["two"].covers(3)
    assert not absences["two"].covers(2)
    together.learn(Gradients(step=3, values=np.zeros((3, 7, 1), dtype=np.float32)))
    together.finish()
    assert (len(parties["one"].heard), len(parties["two"].heard)) == (4, 2)


@pytest.mark.parametrize("what", ["learn", "hear"])
def test_who_leaves_before_the_answer_is_gone_one_step_later(what: str) -> None:
    together, _, absences = both(two=(what, 1))
    together.receive_embeddings(ROOTS, Purpose.TRAIN)
    if what == "learn":
        together.learn(Gradients(step=1, values=np.zeros((2, 7, 1), dtype=np.float32)))
    else:
        together.send_verdict(1, Verdict.CONTINUE)
    assert not absences["two"].covers(1)
    assert absences["two"].covers(2)
    assert together.left == []
    came = together.receive_embeddings(ROOTS, Purpose.TRAIN)
    assert came.values[0, :, 0].tolist() == [2, 2, 2, 2, 1, 1, 1]
    assert together.left == [(1, 0)]


def test_going_on_from_a_memory_takes_the_same_way() -> None:
    together, _, _ = both(two=("release", 3))
    for _ in range(2):
        together.receive_embeddings(ROOTS, Purpose.TRAIN)
    arrays = together.state_arrays()
    expected = [together.receive_embeddings(ROOTS, Purpose.TRAIN).values for _ in range(2)]
    again, parties, absences = both(two=("release", 99))
    absences["two"].start(3)  # as it was written down
    again.load_state_arrays(arrays)
    found = [again.receive_embeddings(ROOTS, Purpose.TRAIN).values for _ in range(2)]
    assert all(np.array_equal(one, other) for one, other in zip(expected, found, strict=True))
    assert parties["two"].step == 2
    after, parties, _ = both(two=("release", 99))
    after.load_state_arrays(together.state_arrays())
    assert after.lost_peers == ["two"]
    assert after.left == [(1, 0)]


def test_who_is_waited_for_ends_the_run() -> None:
    together, parties, _ = both(two=("release", 99))
    parties["one"].gone_at = ("release", 1)
    with pytest.raises(PeerLostError, match="one is cut off"):
        together.receive_embeddings(ROOTS, Purpose.TRAIN)


@pytest.mark.parametrize("what", ["release", "learn"])
def test_nobody_is_left_to_go_on_with(what: str) -> None:
    together, _, absences = both(one=(what, 1), two=("release", 2))
    together.receive_embeddings(ROOTS, Purpose.TRAIN)
    together.learn(Gradients(step=1, values=np.zeros((2, 7, 1), dtype=np.float32)))
    with pytest.raises(PeerLostError, match="two is cut off"):
        together.receive_embeddings(ROOTS, Purpose.TRAIN)
    assert not absences["two"].has_started  # it may come back, and the run goes on


def test_going_on_without_a_party_of_which_nothing_was_kept() -> None:
    together, _, _ = both()
    together.receive_embeddings(ROOTS, Purpose.TRAIN)
    again, _, _ = both(two=("release", 99))
    with pytest.raises(InputError, match="when_lost of two: expected what this run began with"):
        again.load_state_arrays(together.state_arrays())


def test_what_came_is_written_down_when_it_made_sense() -> None:
    noted: list[str] = []
    parties = {name: Scripted(shape) for name, shape in SHAPES.items()}
    members = [
        GroupMember(name, party, SHAPES[name], persist_received=partial(noted.append, name))
        for name, party in parties.items()
    ]
    together = DataPeerGroup(members, num_rows=6, leave=lambda k, stage: None)
    together.receive_embeddings(ROOTS, Purpose.TRAIN)
    assert noted == ["one", "two"]
    parties["two"].shape = (3, 2)
    with pytest.raises(RemoteProtocolError) as refused:
        together.receive_embeddings(ROOTS, Purpose.TRAIN)
    assert noted == ["one", "two", "one"]
    assert refused.value.party_name == "two"


def test_nonsense_is_not_gone_on_without() -> None:
    together, parties, _ = both(two=("release", 1))
    parties["two"].error = RemoteProtocolError("nonsense")
    with pytest.raises(RemoteProtocolError):
        together.receive_embeddings(ROOTS, Purpose.TRAIN)
    together, parties, _ = both(two=("release", 1))
    parties["two"].error = PeerStoppedError("its budget is spent")
    together.receive_embeddings(ROOTS, Purpose.TRAIN)
    assert together.lost_peers == ["two"]


def test_embeddings_of_other_roots_or_shapes() -> None:
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
