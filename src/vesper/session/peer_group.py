"""Several data parties, at the label party: one step of all of them is one step of the session.

Each runs its own session with the label party and knows nothing of the others. Where the run may go
on without one, what it sent last of each row is kept; a party that is lost is answered for from
there, and gets no more gradients. That is post-processing of what was released: it costs nothing.

Claim SEVERAL: each graph is protected from all other parties together.

Since when a data party is gone, where the run goes on without it.

    <file>   number of the first exchange that it was not there for

It is written down before anything follows from it: a label party that goes on after a crash does
without that party from the same exchange on, and so sends the others the same bytes again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vesper.errors import (
    InputError,
    PeerLostError,
    PeerStoppedError,
    RemoteProtocolError,
    VesperError,
)
from vesper.files import replace_file
from vesper.party.state import Arrays, with_prefix, without_prefix
from vesper.protocol.fields import digest_of_roots
from vesper.protocol.messages import Embeddings, Gradients, Purpose, Verdict
from vesper.session.observer import NO_OBSERVER, SessionObserver
from vesper.session.peer import DataSide


class Absence:
    """Whether one data party is still there.

    Args:
        path: keeps it; None for a run in one process.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._since = None if path is None or not path.exists() else _read(path)

    def covers(self, step: int) -> bool:
        """Whether it is gone at this exchange."""
        return self._since is not None and step >= self._since

    @property
    def has_started(self) -> bool:
        """Whether it is gone, at this exchange or from the next on."""
        return self._since is not None

    def start(self, step: int) -> None:
        """Do without it from this exchange on."""
        if self._path is not None:
            try:
                replace_file(self._path, str(step).encode())
            except OSError as error:
                raise VesperError(
                    f"{self._path}: cannot be written ({error.strerror}); make room, then go on "
                    f"with --resume"
                ) from None
        self._since = step


def _read(path: Path) -> int:
    try:
        return int(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise VesperError(
            f"{path}: cannot be read ({error}); restore it, or begin a new run"
        ) from None


T = TypeVar("T")

MemberLeft = Callable[[int, int], None]
"""Is told which party has left, and the last stage that it was there for to the end."""


@dataclass(frozen=True)
class GroupMember:
    """One of the data parties."""

    name: str
    party: DataSide
    shape: tuple[int, int]
    """Width and depth of its embeddings."""
    absence: Absence | None = None
    """Where the run may go on without it."""
    persist_received: Callable[[], None] = lambda: None
    """Keeps what came last, before anything that follows from it is sent to others."""


class DataPeerGroup:
    """All data parties as one.

    Args:
        members: in the order of the joined decoder.
        num_rows: of the roster.
        leave: is told when one has left.
        observer: learns why a member has left.
    """

    def __init__(
        self,
        members: Sequence[GroupMember],
        *,
        num_rows: int,
        leave: MemberLeft,
        observer: SessionObserver = NO_OBSERVER,
    ) -> None:
        self._members, self._leave, self._observer = members, leave, observer
        self._step = self._stage = 0
        self._last_rows = {
            k: np.zeros((num_rows, *member.shape), dtype=np.float32)
            for k, member in enumerate(members)
            if member.absence is not None
        }
        self._steps = [0] * len(members)  # of what came last from each
        self._left: dict[int, int] = {}  # last stage of those who have

    def state_arrays(self) -> Arrays:
        """What `load_state_arrays` needs, between two epochs."""
        arrays = {"group": np.array([self._step, self._stage, *self._steps])}
        for k, member in enumerate(self._members):
            arrays |= with_prefix(f"member/{k}", member.party.state_arrays())
        arrays |= {f"rows/{k}": kept.copy() for k, kept in self._last_rows.items()}
        return arrays | {f"left/{k}": np.array(stage) for k, stage in self._left.items()}

    def load_state_arrays(self, arrays: Arrays) -> None:
        """Go on as if nothing had happened since `state_arrays`."""
        self._step, self._stage, *self._steps = (int(n) for n in arrays["group"])
        for k, member in enumerate(self._members):
            member.party.load_state_arrays(without_prefix(f"member/{k}", arrays))
        for k, kept in self._last_rows.items():
            if f"rows/{k}" not in arrays:
                raise InputError(
                    f"when_lost of {self._members[k].name}: expected what this run began with, got "
                    f"'go-on'; what it has sent was not kept. Put it back, or begin a new run"
                )
            kept[:] = arrays[f"rows/{k}"]
        for name, stage in without_prefix("left", arrays).items():
            self._left[int(name)] = int(stage)
            self._leave(int(name), int(stage))

    def begin_stage(self, stage: int) -> None:
        """Note the stage."""
        self._stage = stage

    def receive_embeddings(self, roots: NDArray[np.int64], purpose: Purpose) -> Embeddings:
        """Wait for the next embeddings of all: (B, sum of widths x depths, 1)."""
        self._step += 1
        parts = [self._member_embeddings(k, roots, purpose) for k in range(len(self._members))]
        flat = np.concatenate([part.reshape(len(roots), -1) for part in parts], axis=1)
        return Embeddings(
            step=self._step,
            purpose=purpose,
            roots_digest=digest_of_roots(roots),
            values=flat[:, :, None],
        )

    def learn(self, gradients: Gradients) -> None:
        """Send each the gradients of its own embeddings."""
        first, count = 0, len(gradients.values)
        for k, member in enumerate(self._members):
            width = member.shape[0] * member.shape[1]
            values = gradients.values[:, first : first + width, 0].reshape(count, *member.shape)
            first += width
            own = Gradients(step=self._steps[k], values=np.ascontiguousarray(values))
            self._call_member(k, partial(_learn, own), is_answer=True)

    def send_verdict(self, step: int, verdict: Verdict) -> None:
        """Tell all."""
        for k, own in enumerate(self._steps):
            self._call_member(k, partial(_send_verdict, own, verdict), is_answer=True)

    def finish(self) -> None:
        """Wait for the last word of all that are still there."""
        self._step += 1
        for k in range(len(self._members)):
            self._call_member(k, lambda party: party.finish())

    @property
    def lost_peers(self) -> list[str]:
        """Names of those that have left."""
        return [self._members[k].name for k in sorted(self._left)]

    def _member_embeddings(
        self, k: int, roots: NDArray[np.int64], purpose: Purpose
    ) -> NDArray[np.float32]:
        """(B, width, depth) of one party: as it sends them, or as it did."""
        member = self._members[k]

        def next_one(party: DataSide) -> Embeddings:
            embeddings = party.receive_embeddings(roots, purpose)
            _refuse_other_embeddings(embeddings, roots, member)
            return embeddings

        came = self._call_member(k, next_one)
        if came is None:
            return self._last_rows[k][roots]
        member.persist_received()
        self._steps[k] = came.step
        if k in self._last_rows:
            self._last_rows[k][roots] = came.values
        return came.values

    def _call_member(
        self, k: int, act: Callable[[DataSide], T], *, is_answer: bool = False
    ) -> T | None:
        """Do something with a party that is there; None when it has left, or leaves now.

        Who leaves before it has the answer has still been heard: it is gone one exchange later.
        """
        member = self._members[k]
        if member.absence is not None and member.absence.covers(self._step):
            self._mark_left(k)
            return None
        try:
            return act(member.party)
        except VesperError as error:
            error.party_name = member.name
            is_gone = isinstance(error, PeerLostError | PeerStoppedError)
            if not is_gone or member.absence is None or self._is_last(k):
                raise
            member.absence.start(self._step + is_answer)
            self._observer.warning(
                f"{error}; continuing without {member.name}, with what it has sent so far"
            )
            if not is_answer:
                self._mark_left(k)
            return None

    def _is_last(self, k: int) -> bool:
        """Whether nobody would be there without it."""
        others = [member.absence for j, member in enumerate(self._members) if j != k]
        return all(absence is not None and absence.has_started for absence in others)

    def _mark_left(self, k: int) -> None:
        """Decode it from now on as of the last stage in which it has sent every row."""
        if k not in self._left:
            self._left[k] = max(self._stage - 1, 0)
            self._leave(k, self._left[k])


def _learn(gradients: Gradients, party: DataSide) -> None:
    party.learn(gradients)


def _send_verdict(step: int, verdict: Verdict, party: DataSide) -> None:
    party.send_verdict(step, verdict)


def _refuse_other_embeddings(
    embeddings: Embeddings, roots: NDArray[np.int64], member: GroupMember
) -> None:
    """Refuse embeddings of other roots or of another shape, before they stand beside others."""
    if embeddings.roots_digest != digest_of_roots(roots):
        raise RemoteProtocolError(
            f"step {embeddings.step}: {member.name} sent embeddings of other roots than expected"
        )
    expected = (len(roots), *member.shape)
    if embeddings.values.shape != expected:
        raise RemoteProtocolError(
            f"step {embeddings.step}: expected embeddings of shape {expected}, {member.name} sent "
            f"{embeddings.values.shape}"
        )
