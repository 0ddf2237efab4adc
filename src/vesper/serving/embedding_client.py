"""Client of the label party after training: sends queries to the data party.

A query can be repeated at no cost, so a lost connection is replaced and the query repeated once.
Whatever the peer sends is checked before it is used.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic

from vesper.deployment.saved_run import SavedLabelRun
from vesper.errors import LocalProtocolError, PeerError, PeerLostError, RemoteProtocolError
from vesper.method.registry import find_method
from vesper.protocol.codec import MAX_FRAME_BYTES, Limits, ids_frame_bytes, tensor_frame_bytes
from vesper.protocol.fields import digest_of_ids
from vesper.protocol.inference_turns import QUERY_TABLE
from vesper.protocol.messages import (
    EmbeddingClientHello,
    EmbeddingQuery,
    EmbeddingServerHello,
    Farewell,
    IdTexts,
    QueryAnswer,
)
from vesper.protocol.turns import Role
from vesper.session.peer import PROTOCOL_VERSION, Link, refuse_other_contract
from vesper.transport.channel import Channel
from vesper.transport.close_reason import CloseReason, close_reason_for
from vesper.transport.reconnect import Connect

_NAME = re.compile("[0-9a-f]{32}")
BUSY_TIMEOUT = 2.0
"""Seconds to wait for another thread that is waiting for the peer."""

SnapshotReply = tuple[str, QueryAnswer]
"""The name of the snapshot, and the reply about it."""


class EmbeddingClient:
    """Sends queries to one data party, from any thread, one at a time.

    Args:
        connect: makes a connection to the data party.
        run: this party's saved run.
        peer: name of the data party, for messages.
    """

    def __init__(self, connect: Connect, run: SavedLabelRun, *, peer: str) -> None:
        self._connect, self._run, self._peer = connect, run, peer
        method = find_method(run.config.run.method)
        self._shape = method.make_decoder(run.config, run.sizes).embedding_shape
        self._lock = threading.Lock()
        self._open: tuple[Channel, Link, str] | None = None
        self._number = 0
        self.unreachable_since: float | None = None
        """Monotonic time since which the peer has not answered; None while it answers."""

    def query(self, ids: IdTexts, *, limit: float | None) -> SnapshotReply:
        """Query the embeddings of nodes or, without ids, the budget.

        Args:
            ids: at most as many as one query may have.
            limit: seconds to wait for a connection; None to wait forever.

        Raises:
            PeerLostError: the data party cannot be reached.
            PeerError: the peer is the wrong one, or sent something that it must not send.
            InputError: the settings of the peer differ.
        """
        with self._exclusive():
            try:
                reply = self._query_once(ids, limit)
            except PeerLostError:
                self.unreachable_since = self.unreachable_since or monotonic()
                raise
            self.unreachable_since = None
            return reply

    def close(self) -> None:
        """Send a farewell and close the connection; a query in progress gets no answer."""
        if self._open is not None:
            channel, link, _ = self._open
            with suppress(PeerError, LocalProtocolError):  # the peer left, or a reply is due
                link.send(Farewell())
            channel.close()
            self._open = None

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=BUSY_TIMEOUT):
            raise PeerLostError(f"{self._peer} has not answered an earlier query yet")
        try:
            yield
        finally:
            self._lock.release()

    def _query_once(self, ids: IdTexts, limit: float | None) -> SnapshotReply:
        is_fresh = self._open is None
        while True:
            try:
                _, link, snapshot = self._open or self._open_link(limit)
                self._number += 1
                link.send(EmbeddingQuery(number=self._number, ids=ids))
                return snapshot, self._checked(link.receive(self._reply_limits(ids)), ids)
            except PeerLostError as error:
                self._drop(close_reason_for(error))
                if is_fresh:
                    raise
                is_fresh = True  # the old connection is gone: one more attempt, with a new one
            except BaseException as error:
                self._drop(close_reason_for(error))
                raise

    def _reply_limits(self, ids: IdTexts) -> Limits:
        """Limits of the reply to a query: all ids may be unknown, or all known."""
        longest = max((len(text.encode()) for text in ids), default=0)
        unknown = ids_frame_bytes(len(ids), longest=longest)
        known = tensor_frame_bytes(len(ids), *self._shape)
        return Limits(ids=len(ids), frame=min(unknown + known, MAX_FRAME_BYTES))

    def _open_link(self, limit: float | None) -> tuple[Channel, Link, str]:
        channel = self._connect(limit)
        link = Link(Role.LABEL, channel, QUERY_TABLE)
        try:
            hello = self._exchange_hellos(link)
        except BaseException as error:
            channel.close(close_reason_for(error))
            raise
        self._open = channel, link, hello.snapshot
        return self._open

    def _exchange_hellos(self, link: Link) -> EmbeddingServerHello:
        run = self._run
        try:
            hello = link.expect(EmbeddingServerHello)
        except RemoteProtocolError:
            raise PeerError(
                f"{self._peer} does not answer queries: it is in a training session, or has "
                f"another version; it should run `vesper party data --config FILE --answer`"
            ) from None
        link.send(EmbeddingClientHello(PROTOCOL_VERSION, run.contract, run.session, run.stage))
        refuse_other_contract(hello, run.contract)
        if hello.session != run.session:
            raise PeerError(f"{self._peer} answers for the model of another run than this one")
        if not _NAME.fullmatch(hello.snapshot):
            raise RemoteProtocolError(f"{self._peer} sent an invalid name of a snapshot")
        return hello

    def _checked(self, reply: object, ids: IdTexts) -> QueryAnswer:
        """Refuse a reply to another query, about other ids, or with rows that do not fit them."""
        if not isinstance(reply, QueryAnswer) or reply.number != self._number:
            raise RemoteProtocolError(f"{self._peer} sent a reply to another query")
        known = [text for text in ids if text not in set(reply.unknown)]
        if (
            reply.ids_digest != digest_of_ids(ids)
            or not set(reply.unknown) <= set(ids)
            or reply.values.ndim != 3
            or len(reply.values) != len(known)
        ):
            raise RemoteProtocolError(f"{self._peer} sent embeddings of other ids than queried")
        return reply

    def _drop(self, reason: CloseReason) -> None:
        if self._open is not None:
            self._open[0].close(reason)
            self._open = None
