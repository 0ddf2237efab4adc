"""One end of a conversation: messages in turn, over any channel."""

from typing import TypeVar

from vesper.errors import RemoteProtocolError
from vesper.protocol.codec import ANYTHING, Limits, decode, encode
from vesper.protocol.messages import Message
from vesper.protocol.rounding import EXACT, Rounding, Wire
from vesper.protocol.turns import TRAINING, Conversation, Role, Table
from vesper.transport.channel import Channel

M = TypeVar("M", bound=Message)


class Link:
    """Checks every message against the turn table before it is sent and after it came."""

    def __init__(self, role: Role, channel: Channel, table: Table = TRAINING) -> None:
        self._conversation = Conversation(role, table)
        self._role, self._channel = role, channel
        self._rounding = EXACT
        self._limits = ANYTHING
        self.bytes_sent = 0

    def agree_on(self, wire: str, *, seed: int) -> None:
        """Let embeddings and gradients cross like this from now on, both ways."""
        kind = Wire[wire.upper()]
        self._rounding = Rounding(kind, seed=seed, role=list(Role).index(self._role))
        self._limits = Limits(wire=kind)

    def send(self, message: Message) -> None:
        """Send when it is this end's turn."""
        self._conversation.sending(message)
        frame = encode(message, self._rounding)
        self._channel.send(frame)
        self.bytes_sent += len(frame)

    def receive(self, limits: Limits | None = None) -> Message:
        """Wait for any message whose turn it is."""
        message = decode(self._channel.receive(), limits or self._limits)
        self._conversation.received(message)
        return message

    def expect(self, kind: type[M], limits: Limits | None = None) -> M:
        """Wait for a message of this kind, within these limits or those agreed on."""
        message = self.receive(limits)
        if not isinstance(message, kind):
            raise RemoteProtocolError(
                f"expected {kind.__name__}, the peer sent {type(message).__name__}"
            )
        return message
