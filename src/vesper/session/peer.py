"""Each party as the other one sees it, and the link between them.

`Link` sends and receives messages in turn, over any channel. A session begins with the check that
both sides have the same version and the same contract. From then on, `RemoteLabelParty` and
`RemoteDataParty` check what the peer sends:

| field | refused when |
| --- | --- |
| step | another step is due |
| purpose of embeddings | the other purpose is due |
| verdict | no verdict is due, or it contradicts the agreed patience |

The turn table checks turns; the parties check shapes and roots. The size of a frame is limited
before it is held: by what may come next, and by the number of roots where embeddings or gradients
are due.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError, PeerError, RemoteProtocolError
from vesper.party.state import Arrays
from vesper.protocol.codec import (
    MAX_FRAME_BYTES,
    NO_LIMITS,
    Limits,
    decode,
    encode,
    largest_frame,
    tensor_frame_bytes,
)
from vesper.protocol.messages import (
    DataHello,
    EmbeddingClientHello,
    Embeddings,
    EmbeddingServerHello,
    EvaluationReply,
    Gradients,
    LabelHello,
    Message,
    Purpose,
    SessionFinished,
    Verdict,
)
from vesper.protocol.rounding import NO_ROUNDING, Rounding, WireFormat
from vesper.protocol.turns import TRAINING_TABLE, Role, TurnChecker, TurnTable
from vesper.session.contract import contract_differences
from vesper.transport.channel import Channel

M = TypeVar("M", bound=Message)


class Link:
    """One end of a connection; checks every message against the turn table.

    Args:
        role: which end this is.
        channel: carries the frames.
        table: which message may come next.
    """

    def __init__(self, role: Role, channel: Channel, table: TurnTable = TRAINING_TABLE) -> None:
        self._turns = TurnChecker(role, table)
        self._role, self._channel = role, channel
        self._rounding = NO_ROUNDING
        self._limits = NO_LIMITS
        self.bytes_sent = 0

    def set_wire_format(self, wire: str, *, seed: int) -> None:
        """Set the format of embeddings and gradients from now on, in both directions."""
        kind = WireFormat[wire.upper()]
        self._rounding = Rounding(kind, seed=seed, role=list(Role).index(self._role))
        self._limits = Limits(wire=kind)

    def send(self, message: Message) -> None:
        """Send a message whose turn it is."""
        self._turns.record_sent(message)
        frame = encode(message, self._rounding)
        self._channel.send(frame)
        self.bytes_sent += len(frame)

    def receive(self, limits: Limits | None = None) -> Message:
        """Wait for any message whose turn it is, within these limits or the ones agreed on."""
        limits = limits or self._limits
        frame = self._channel.receive(largest_frame(self._turns.due, limits))
        message = decode(frame, limits)
        self._turns.record_received(message)
        return message

    def expect(
        self, kind: type[M], limits: Limits | None = None, *, frame_bytes: int = MAX_FRAME_BYTES
    ) -> M:
        """Wait for a message of this kind.

        Args:
            kind: the kind.
            limits: limits of its frame; None: the ones agreed on.
            frame_bytes: largest size of its frame, where that is known to be less.
        """
        limits = limits or self._limits
        frame_bytes = min(frame_bytes, largest_frame([kind], limits))
        message = self.receive(replace(limits, frame=frame_bytes))
        if not isinstance(message, kind):
            raise RemoteProtocolError(
                f"expected {kind.__name__}, the peer sent {type(message).__name__}"
            )
        return message


PROTOCOL_VERSION = 4

Hello = DataHello | LabelHello | EmbeddingServerHello | EmbeddingClientHello


def refuse_other_contract(hello: Hello, contract: str) -> None:
    """Refuse a peer of another version, or with other shared settings.

    Raises:
        PeerError: the versions differ.
        InputError: the settings differ; the message says which.
        RemoteProtocolError: what the peer sent is not a contract.
    """
    if hello.version != PROTOCOL_VERSION:
        raise PeerError(
            f"the peer uses version {hello.version} of the protocol, this side version "
            f"{PROTOCOL_VERSION}; install the same version of vesper on both sides"
        )
    different = contract_differences(contract, hello.contract)
    if different:
        more = f" and {len(different) - 5} more" if len(different) > 5 else ""
        raise InputError(
            f"the contracts differ in {len(different)} settings: {'; '.join(different[:5])}{more}. "
            f"Agree on one, then approve it on both sides with `vesper contract --approve`"
        )


class RemoteLabelParty:
    """The label party as the data party sees it.

    Args:
        link: connection to it.
        patience: epochs without a better metric after which it may, and must, end a stage.
    """

    def __init__(self, link: Link, *, patience: int) -> None:
        self._link, self._patience, self._epochs_without_best = link, patience, 0

    def begin_stage(self) -> None:
        """Count epochs without a better metric from 0."""
        self._epochs_without_best = 0

    def state_arrays(self) -> Arrays:
        """Return the state that `load_state_arrays` restores; called between two epochs."""
        return {"peer/waited": np.array(self._epochs_without_best)}

    def load_state_arrays(self, arrays: Arrays) -> None:
        """Restore what `state_arrays` returned."""
        self._epochs_without_best = int(arrays["peer/waited"])

    def learn(self, embeddings: Embeddings) -> Gradients:
        """Send embeddings and wait for their gradients."""
        self._link.send(embeddings)
        size = tensor_frame_bytes(*embeddings.values.shape)
        gradients = self._link.expect(Gradients, frame_bytes=size)
        _refuse_other_step(gradients.step, embeddings.step)
        return gradients

    def request_verdict(self, validation: Iterable[Embeddings]) -> Verdict:
        """Send all embeddings of validation nodes, block by block; return the verdict."""
        *early, verdict = [self._send_for_evaluation(embeddings) for embeddings in validation]
        _refuse_verdicts(early)
        if verdict is Verdict.BEST:
            self._epochs_without_best = 0
            return verdict
        self._epochs_without_best += 1
        due = Verdict.STOP if self._epochs_without_best >= self._patience else Verdict.CONTINUE
        if verdict is not due:
            raise RemoteProtocolError(
                f"the peer's verdict is {verdict.name} after {self._epochs_without_best} epochs "
                f"without a better metric, expected {due.name} with a patience of {self._patience}"
            )
        return verdict

    def send_held_out(self, held_out: Iterable[Embeddings]) -> None:
        """Send embeddings of held-out nodes, which are evaluated without a verdict."""
        _refuse_verdicts([self._send_for_evaluation(embeddings) for embeddings in held_out])

    def _send_for_evaluation(self, embeddings: Embeddings) -> Verdict:
        self._link.send(embeddings)
        received = self._link.expect(EvaluationReply)
        _refuse_other_step(received.step, embeddings.step)
        return received.verdict


class DataSide(Protocol):
    """One data party or several, as the label party's loop sees them."""

    def state_arrays(self) -> Arrays:
        """Return the state that `load_state_arrays` restores; called between two epochs."""

    def load_state_arrays(self, arrays: Arrays) -> None:
        """Restore what `state_arrays` returned."""

    def begin_stage(self, stage: int) -> None:
        """Begin a stage, before its first step."""

    def receive_embeddings(self, roots: NDArray[np.int64], purpose: Purpose) -> Embeddings:
        """Wait for the next embeddings, those of the roots."""

    def learn(self, gradients: Gradients) -> None:
        """Send back the gradients of the last embeddings."""

    def send_verdict(self, step: int, verdict: Verdict) -> None:
        """Answer embeddings that were sent for evaluation."""

    def finish(self) -> None:
        """Wait for the end of the session."""


class RemoteDataParty:
    """The data party as the label party sees it.

    Args:
        link: connection to it.
        shape: width and depth of its embeddings.
    """

    def __init__(self, link: Link, shape: tuple[int, int]) -> None:
        self._link, self._shape, self._step = link, shape, 0
        self.lost_peers: list[str] = []
        """Always empty: without this data party there is no run."""

    def state_arrays(self) -> Arrays:
        """Return the state that `load_state_arrays` restores; called between two epochs."""
        return {"peer/step": np.array(self._step)}

    def load_state_arrays(self, arrays: Arrays) -> None:
        """Restore what `state_arrays` returned."""
        self._step = int(arrays["peer/step"])

    def begin_stage(self, stage: int) -> None:
        """Do nothing: the data party knows the stage from the schedule."""

    def receive_embeddings(self, roots: NDArray[np.int64], purpose: Purpose) -> Embeddings:
        """Wait for the next embeddings; the label party checks that they are of these roots."""
        size = tensor_frame_bytes(len(roots), *self._shape)
        embeddings = self._link.expect(Embeddings, frame_bytes=size)
        self._step += 1
        _refuse_other_step(embeddings.step, self._step)
        if embeddings.purpose is not purpose:
            raise RemoteProtocolError(
                f"step {self._step}: expected embeddings with purpose {purpose.name}, the peer "
                f"sent {embeddings.purpose.name}"
            )
        return embeddings

    def learn(self, gradients: Gradients) -> None:
        """Send gradients."""
        self._link.send(gradients)

    def send_verdict(self, step: int, verdict: Verdict) -> None:
        """Send the verdict."""
        self._link.send(EvaluationReply(step=step, verdict=verdict))

    def finish(self) -> None:
        """Wait for the data party's `SessionFinished`."""
        self._link.expect(SessionFinished)


def _refuse_other_step(found: int, due: int) -> None:
    if found != due:
        raise RemoteProtocolError(f"the peer sent step {found}, expected step {due}")


def _refuse_verdicts(verdicts: list[Verdict]) -> None:
    """Refuse a verdict before the last block of validation nodes."""
    for verdict in verdicts:
        if verdict is not Verdict.CONTINUE:
            raise RemoteProtocolError(
                f"the peer's verdict is {verdict.name} although none is due, expected "
                f"{Verdict.CONTINUE.name}"
            )
