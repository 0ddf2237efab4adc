"""Each party as the other one sees it: messages out, messages in, and what may be in them.

| of the peer | is refused when |
| --- | --- |
| step | another one is due |
| purpose of embeddings | the other one is due |
| verdict | there is nothing to judge yet, or it goes against the patience agreed |

Turns are the turn table's matter, shapes and roots are the parties'.

One end of a conversation: messages in turn, over any channel.

The first words of a session: same version, same contract, or none at all.
"""

from collections.abc import Iterable
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError, PeerError, RemoteProtocolError
from vesper.party.state import Arrays
from vesper.protocol.codec import NO_LIMITS, Limits, decode, encode
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
    """Checks every message against the turn table before it is sent and after it came."""

    def __init__(self, role: Role, channel: Channel, table: TurnTable = TRAINING_TABLE) -> None:
        self._conversation = TurnChecker(role, table)
        self._role, self._channel = role, channel
        self._rounding = NO_ROUNDING
        self._limits = NO_LIMITS
        self.bytes_sent = 0

    def set_wire_format(self, wire: str, *, seed: int) -> None:
        """Let embeddings and gradients cross like this from now on, both ways."""
        kind = WireFormat[wire.upper()]
        self._rounding = Rounding(kind, seed=seed, role=list(Role).index(self._role))
        self._limits = Limits(wire=kind)

    def send(self, message: Message) -> None:
        """Send when it is this end's turn."""
        self._conversation.record_sent(message)
        frame = encode(message, self._rounding)
        self._channel.send(frame)
        self.bytes_sent += len(frame)

    def receive(self, limits: Limits | None = None) -> Message:
        """Wait for any message whose turn it is."""
        message = decode(self._channel.receive(), limits or self._limits)
        self._conversation.record_received(message)
        return message

    def expect(self, kind: type[M], limits: Limits | None = None) -> M:
        """Wait for a message of this kind, within these limits or those agreed on."""
        message = self.receive(limits)
        if not isinstance(message, kind):
            raise RemoteProtocolError(
                f"expected {kind.__name__}, the peer sent {type(message).__name__}"
            )
        return message


PROTOCOL_VERSION = 3

Hello = DataHello | LabelHello | EmbeddingServerHello | EmbeddingClientHello


def refuse_other_contract(hello: Hello, contract: str) -> None:
    """Refuse a peer of another version, or with other shared settings.

    Raises:
        PeerError: the versions differ.
        InputError: the settings differ; the message says which.
        RemoteProtocolError: what the peer sent is no contract.
    """
    if hello.version != PROTOCOL_VERSION:
        raise PeerError(
            f"the peer speaks version {hello.version} of the protocol, this side version "
            f"{PROTOCOL_VERSION}; install the same vesper on both sides"
        )
    different = contract_differences(contract, hello.contract)
    if different:
        more = f" and {len(different) - 5} more" if len(different) > 5 else ""
        raise InputError(
            f"the contracts differ in {len(different)} settings: {'; '.join(different[:5])}{more}. "
            f"Agree on one, then approve it on both sides with `vesper contract --approve`"
        )


class RemoteLabelParty:
    """The label party, at the data party.

    Args:
        link: to it.
        patience: epochs without a better metric before it may, and must, end a stage.
    """

    def __init__(self, link: Link, *, patience: int) -> None:
        self._link, self._patience, self._epochs_without_best = link, patience, 0

    def begin_stage(self) -> None:
        """Wait for a better metric from the beginning."""
        self._epochs_without_best = 0

    def state_arrays(self) -> Arrays:
        """What `load_state_arrays` needs, between two epochs."""
        return {"peer/waited": np.array(self._epochs_without_best)}

    def load_state_arrays(self, arrays: Arrays) -> None:
        """Go on as if nothing had happened since `state_arrays`."""
        self._epochs_without_best = int(arrays["peer/waited"])

    def learn(self, embeddings: Embeddings) -> Gradients:
        """Send embeddings, wait for their gradients."""
        self._link.send(embeddings)
        gradients = self._link.expect(Gradients)
        _refuse_other_step(gradients.step, embeddings.step)
        return gradients

    def request_verdict(self, validation: Iterable[Embeddings]) -> Verdict:
        """Send all embeddings of validation nodes, block by block; give the verdict."""
        *early, verdict = [self._send_for_evaluation(embeddings) for embeddings in validation]
        _refuse_verdicts(early)
        if verdict is Verdict.BEST:
            self._epochs_without_best = 0
            return verdict
        self._epochs_without_best += 1
        due = Verdict.STOP if self._epochs_without_best >= self._patience else Verdict.CONTINUE
        if verdict is not due:
            raise RemoteProtocolError(
                f"the peer's verdict is {verdict.name} after {self._epochs_without_best} epochs without a "
                f"better metric, expected {due.name} with a patience of {self._patience}"
            )
        return verdict

    def send_held_out(self, held_out: Iterable[Embeddings]) -> None:
        """Send embeddings that are measured and not judged."""
        _refuse_verdicts([self._send_for_evaluation(embeddings) for embeddings in held_out])

    def _send_for_evaluation(self, embeddings: Embeddings) -> Verdict:
        self._link.send(embeddings)
        received = self._link.expect(EvaluationReply)
        _refuse_other_step(received.step, embeddings.step)
        return received.verdict


class DataSide(Protocol):
    """One data party or several, at the label party."""

    def state_arrays(self) -> Arrays:
        """What `load_state_arrays` needs, between two epochs."""

    def load_state_arrays(self, arrays: Arrays) -> None:
        """Go on as if nothing had happened since `state_arrays`."""

    def begin_stage(self, stage: int) -> None:
        """A stage begins, from its first step."""

    def receive_embeddings(self, roots: NDArray[np.int64], purpose: Purpose) -> Embeddings:
        """Wait for the next embeddings, those of the roots."""

    def learn(self, gradients: Gradients) -> None:
        """Send back the gradients of the embeddings that came last."""

    def send_verdict(self, step: int, verdict: Verdict) -> None:
        """Say that embeddings to evaluate have come, and what follows from them."""

    def finish(self) -> None:
        """Wait for the end."""


class RemoteDataParty:
    """The data party, at the label party.

    Args:
        link: to it.
    """

    def __init__(self, link: Link) -> None:
        self._link, self._step = link, 0
        self.lost_peers: list[str] = []
        """Nobody: without it there is no run."""

    def state_arrays(self) -> Arrays:
        """What `load_state_arrays` needs, between two epochs."""
        return {"peer/step": np.array(self._step)}

    def load_state_arrays(self, arrays: Arrays) -> None:
        """Go on as if nothing had happened since `state_arrays`."""
        self._step = int(arrays["peer/step"])

    def begin_stage(self, stage: int) -> None:
        """It knows by itself."""

    def receive_embeddings(self, roots: NDArray[np.int64], purpose: Purpose) -> Embeddings:
        """Wait for the next embeddings; whether they are of these roots, the label party checks."""
        embeddings = self._link.expect(Embeddings)
        self._step += 1
        _refuse_other_step(embeddings.step, self._step)
        if embeddings.purpose is not purpose:
            raise RemoteProtocolError(
                f"step {self._step}: expected embeddings to {purpose.name}, the peer sent some to "
                f"{embeddings.purpose.name}"
            )
        return embeddings

    def learn(self, gradients: Gradients) -> None:
        """Send gradients."""
        self._link.send(gradients)

    def send_verdict(self, step: int, verdict: Verdict) -> None:
        """Send the verdict."""
        self._link.send(EvaluationReply(step=step, verdict=verdict))

    def finish(self) -> None:
        """Wait for its last word."""
        self._link.expect(SessionFinished)


def _refuse_other_step(found: int, due: int) -> None:
    if found != due:
        raise RemoteProtocolError(f"the peer speaks of step {found}, expected step {due}")


def _refuse_verdicts(verdicts: list[Verdict]) -> None:
    """Refuse a verdict where there is nothing to judge."""
    for verdict in verdicts:
        if verdict is not Verdict.CONTINUE:
            raise RemoteProtocolError(f"the peer's verdict is {verdict.name} before its time")
