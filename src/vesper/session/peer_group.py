"""Several data parties as the label party's loop sees them: one step of all is one step.

Each data party runs its own session with the label party and knows nothing of the others. Claim
SEVERAL: each graph is protected from all other parties together.

Where the run may continue without a party, the last embeddings that it sent for each row are
stored. Once the party is lost, these take the place of new ones, and it gets no more gradients.
That is post-processing of what was released: it costs nothing.

    absence file   number of the first exchange that the party was absent from

The file is written before anything follows from the absence: after a crash, the label party does
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
    """Record of whether, and since when, one data party is absent.

    Args:
        path: file to store it in; None for a run in one process.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._since = None if path is None or not path.exists() else _read(path)

    def covers(self, step: int) -> bool:
        """Whether the party is absent from this exchange."""
        return self._since is not None and step >= self._since

    @property
    def has_started(self) -> bool:
        """Whether the party is absent, from the current exchange or from the next one on."""
        return self._since is not None

    def start(self, step: int) -> None:
        """Record that the party is absent from this exchange on."""
        if self._path is not None:
            try:
                replace_file(self._path, str(step).encode())
            except OSError as error:
                raise VesperError(
                    f"{self._path}: cannot be written ({error.strerror}); free some space, then "
                    f"continue with --resume"
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
"""Called with the number of a party that has left and the last stage that it completed."""


@dataclass(frozen=True)
class GroupMember:
    """One of the data parties."""

    name: str
    party: DataSide
    shape: tuple[int, int]
    """Width and depth of its embeddings."""
    absence: Absence | None = None
    """Record of its absence; None: the run cannot continue without it."""
    persist_received: Callable[[], None] = lambda: None
    """Stores the last received frame, before anything derived from it is sent to others."""


class DataPeerGroup:
    """All data parties behind the interface of one, `DataSide`.

    Claim: SEVERAL. Everything that all other parties together see is mu_k-GDP for the graph of data
        party k, where mu_k is that of the releases of this graph alone. With `label_epsilon`, all
        that the data parties together see is label_epsilon-DP for each label that is responded to.
    Relation: one edge of one party's graph, or one label; everything else is unchanged.
    Assumes: noise is independent between parties; features and labels of one party are not computed
        from edges of another.
    Moves: what each graph's own claim says.
    Tight: as each graph's own claim.
    Proof: docs/claims/SEVERAL.md.

    Args:
        members: the data parties, in the order of the joined decoder.
        num_rows: number of rows of the roster.
        leave: called when a member has left.
        observer: receives a warning when a member is lost.
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
        self._steps = [0] * len(members)  # step of the last embeddings of each member
        self._left: dict[int, int] = {}  # member that has left -> last stage it completed

    def state_arrays(self) -> Arrays:
        """Return the state that `load_state_arrays` restores; called between two epochs."""
        arrays = {"group": np.array([self._step, self._stage, *self._steps])}
        for k, member in enumerate(self._members):
            arrays |= with_prefix(f"member/{k}", member.party.state_arrays())
        arrays |= {f"rows/{k}": rows.copy() for k, rows in self._last_rows.items()}
        return arrays | {f"left/{k}": np.array(stage) for k, stage in self._left.items()}

    def load_state_arrays(self, arrays: Arrays) -> None:
        """Restore what `state_arrays` returned."""
        self._step, self._stage, *self._steps = (int(n) for n in arrays["group"])
        for k, member in enumerate(self._members):
            member.party.load_state_arrays(without_prefix(f"member/{k}", arrays))
        for k, rows in self._last_rows.items():
            if f"rows/{k}" not in arrays:
                raise InputError(
                    f"when_lost of {self._members[k].name}: expected what this run began with, got "
                    f"'go-on'; the embeddings it sent were not stored. Change it back, or begin a "
                    f"new run"
                )
            rows[:] = arrays[f"rows/{k}"]
        for name, stage in without_prefix("left", arrays).items():
            self._left[int(name)] = int(stage)
            self._leave(int(name), int(stage))

    def begin_stage(self, stage: int) -> None:
        """Note the stage that begins."""
        self._stage = stage

    def receive_embeddings(self, roots: NDArray[np.int64], purpose: Purpose) -> Embeddings:
        """Wait for the next embeddings of all parties: (B, sum of widths x depths, 1)."""
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
        """Send each party the gradients of its own embeddings."""
        first, count = 0, len(gradients.values)
        for k, member in enumerate(self._members):
            width = member.shape[0] * member.shape[1]
            values = gradients.values[:, first : first + width, 0].reshape(count, *member.shape)
            first += width
            own = Gradients(step=self._steps[k], values=np.ascontiguousarray(values))
            self._call_member(k, partial(_learn, own), is_answer=True)

    def send_verdict(self, step: int, verdict: Verdict) -> None:
        """Send the verdict to all parties."""
        for k, own in enumerate(self._steps):
            self._call_member(k, partial(_send_verdict, own, verdict), is_answer=True)

    def finish(self) -> None:
        """Wait for the end of the session of every party that is still there."""
        self._step += 1
        for k in range(len(self._members)):
            self._call_member(k, lambda party: party.finish())

    @property
    def lost_peers(self) -> list[str]:
        """Names of the data parties that have left."""
        return [self._members[k].name for k in sorted(self._left)]

    def _member_embeddings(
        self, k: int, roots: NDArray[np.int64], purpose: Purpose
    ) -> NDArray[np.float32]:
        """Return embeddings (B, width, depth) of one party; the last stored ones if it has left."""
        member = self._members[k]

        def receive(party: DataSide) -> Embeddings:
            embeddings = party.receive_embeddings(roots, purpose)
            _refuse_other_embeddings(embeddings, roots, member)
            return embeddings

        received = self._call_member(k, receive)
        if received is None:
            return self._last_rows[k][roots]
        member.persist_received()
        self._steps[k] = received.step
        if k in self._last_rows:
            self._last_rows[k][roots] = received.values
        return received.values

    def _call_member(
        self, k: int, act: Callable[[DataSide], T], *, is_answer: bool = False
    ) -> T | None:
        """Call `act` with a party; None if the party has left, or is lost now.

        A party that is lost while an answer is sent to it has taken part in this exchange: it is
        absent from the next one on.
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
        """Whether no party would be left without this one."""
        others = [member.absence for j, member in enumerate(self._members) if j != k]
        return all(absence is not None and absence.has_started for absence in others)

    def _mark_left(self, k: int) -> None:
        """Decode the party from now on as of the last stage in which it sent every row."""
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
    """Refuse embeddings of other roots or of another shape, before they are joined with others."""
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
