"""One end of a conversation: messages in turn, over any channel."""

from typing import TypeVar

from vesper.errors import RemoteProtocolError
from vesper.protocol.codec import decode, encode
from vesper.protocol.messages import Message
from vesper.protocol.turns import TRAINING, Conversation, Role, Table
from vesper.transport.channel import Channel

M = TypeVar("M", bound=Message)


class Link:
    """Checks every message against the turn table before it is sent and after it came."""

    def __init__(self, role: Role, channel: Channel, table: Table = TRAINING) -> None:
        self._conversation = Conversation(role, table)
        self._channel = channel
        self.bytes_sent = 0

    def send(self, message: Message) -> None:
        """Send when it is this end's turn."""
        self._conversation.sending(message)
        frame = encode(message)
        self._channel.send(frame)
        self.bytes_sent += len(frame)

    def receive(self) -> Message:
        """Wait for any message whose turn it is."""
        message = decode(self._channel.receive())
        self._conversation.received(message)
        return message

    def expect(self, kind: type[M]) -> M:
        """Wait for a message of this kind."""
        message = self.receive()
        if not isinstance(message, kind):
            raise RemoteProtocolError(
                f"expected {kind.__name__}, the peer sent {type(message).__name__}"
            )
        return message
