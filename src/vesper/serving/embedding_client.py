"""The label party after training: it asks the data party, over one connection after the other.

Queries can be asked again at no cost, so a connection that was lost is replaced and the query
repeated once. Whatever comes from the peer is checked before it is used.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic

from vesper.deployment.saved_run import SavedLabelRun
from vesper.errors import LocalProtocolError, PeerError, PeerLostError, RemoteProtocolError
from vesper.protocol.fields import digest_of_ids
from vesper.protocol.inference_turns import QUERY_TABLE
from vesper.protocol.messages import (
    EmbeddingClientHello,
    EmbeddingQuery,
    EmbeddingServerHello,
    Farewell,
    IdTexts,
    QueryAnswer,
    QueryRefusal,
)
from vesper.protocol.turns import Role
from vesper.session.peer import PROTOCOL_VERSION, Link, refuse_other_contract
from vesper.transport.channel import Channel
from vesper.transport.close_reason import CloseReason, close_reason_for
from vesper.transport.reconnect import Connect

_NAME = re.compile("[0-9a-f]{32}")
MAX_REASON_LENGTH = 500
BUSY_TIMEOUT = 2.0
"""Seconds to wait for another thread that is waiting for the peer."""

SnapshotReply = tuple[str, QueryAnswer | QueryRefusal]
"""Of which snapshot, and what."""


class EmbeddingClient:
    """Asks, from any thread, one query at a time.

    Args:
        connect: makes a connection to the data party.
        run: what this party kept of the run.
        peer: who the data party is, for messages.
    """

    def __init__(self, connect: Connect, run: SavedLabelRun, *, peer: str) -> None:
        self._connect, self._run, self._peer = connect, run, peer
        self._lock = threading.Lock()
        self._open: tuple[Channel, Link, str] | None = None
        self._number = 0
        self.unreachable_since: float | None = None
        """Since when nobody has answered; None while somebody does."""

    def query(self, ids: IdTexts, *, limit: float | None) -> SnapshotReply:
        """Ask about nodes, or about the budget without ids.

        Args:
            ids: at most as many as one query may have.
            limit: seconds to wait for a connection; None to wait for ever.

        Raises:
            PeerLostError: the data party is away.
            PeerError: it is somebody else, or sent something that it may not send.
            InputError: its settings are others.
        """
        with self._exclusive():
            try:
                told = self._query_once(ids, limit)
            except PeerLostError:
                self.unreachable_since = self.unreachable_since or monotonic()
                raise
            self.unreachable_since = None
            return told

    def close(self) -> None:
        """Say farewell; whoever is still waiting for an answer will not get it."""
        if self._open is not None:
            channel, link, _ = self._open
            with suppress(PeerError, LocalProtocolError):  # it has left, or its reply is due
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
                return snapshot, self._checked(link.receive(), ids)
            except PeerLostError as error:
                self._drop(close_reason_for(error))
                if is_fresh:
                    raise
                is_fresh = True  # the old connection is gone: one more attempt, with a new one
            except BaseException as error:
                self._drop(close_reason_for(error))
                raise

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
                f"{self._peer} does not answer questions: it is in a training session, or has "
                f"another version; it should run `vesper party data --config FILE --answer`"
            ) from None
        link.send(EmbeddingClientHello(PROTOCOL_VERSION, run.contract, run.session, run.stage))
        refuse_other_contract(hello, run.contract)
        if hello.session != run.session:
            raise PeerError(f"{self._peer} answers for the model of another run than this one")
        if not _NAME.fullmatch(hello.snapshot):
            raise RemoteProtocolError(f"{self._peer} sent a name of a snapshot that is none")
        return hello

    def _checked(self, reply: object, ids: IdTexts) -> QueryAnswer | QueryRefusal:
        """Refuse a reply to another query, about other ids, or with rows that do not fit them."""
        if not isinstance(reply, QueryAnswer | QueryRefusal) or reply.number != self._number:
            raise RemoteProtocolError(f"{self._peer} sent a reply to another query")
        if isinstance(reply, QueryRefusal):
            if len(reply.reason) > MAX_REASON_LENGTH or not reply.reason.isprintable():
                raise RemoteProtocolError(f"{self._peer} sent a refusal that cannot be shown")
            return reply
        known = [text for text in ids if text not in set(reply.unknown)]
        if (
            reply.ids_digest != digest_of_ids(ids)
            or not set(reply.unknown) <= set(ids)
            or reply.values.ndim != 3
            or len(reply.values) != len(known)
        ):
            raise RemoteProtocolError(f"{self._peer} sent embeddings of other ids than asked for")
        return reply

    def _drop(self, why: CloseReason) -> None:
        if self._open is not None:
            self._open[0].close(why)
            self._open = None
