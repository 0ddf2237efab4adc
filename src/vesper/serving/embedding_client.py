"""The label party after training: it asks the data party, over one connection after the other.

Queries can be asked again at no cost, so a connection that was lost is replaced and the query
repeated once. Whatever comes from the peer is checked before it is used.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic

from vesper.deployment.saved_run import AskingRun
from vesper.errors import LocalProtocolError, PeerError, PeerLostError, RemoteProtocolError
from vesper.protocol.inference_turns import ASKING
from vesper.protocol.messages import (
    Answer,
    AnswererHello,
    AskerHello,
    Farewell,
    IdTexts,
    Query,
    Refusal,
)
from vesper.protocol.tensor import digest_of_ids
from vesper.protocol.turns import Role
from vesper.session.peer import PROTOCOL_VERSION, Link, refuse_other
from vesper.transport.channel import Channel
from vesper.transport.close_reason import Parting, parting_of
from vesper.transport.reconnect import Connect

_NAME = re.compile("[0-9a-f]{32}")
LONGEST_REASON = 500
BUSY = 2.0
"""Seconds to wait for another thread that is waiting for the peer."""

Told = tuple[str, Answer | Refusal]
"""Of which snapshot, and what."""


class Asker:
    """Asks, from any thread, one query at a time.

    Args:
        connect: makes a connection to the data party.
        run: what this party kept of the run.
        peer: who the data party is, for messages.
    """

    def __init__(self, connect: Connect, run: AskingRun, *, peer: str) -> None:
        self._connect, self._run, self._peer = connect, run, peer
        self._lock = threading.Lock()
        self._open: tuple[Channel, Link, str] | None = None
        self._number = 0
        self.away_since: float | None = None
        """Since when nobody has answered; None while somebody does."""

    def ask(self, ids: IdTexts, *, limit: float | None) -> Told:
        """Ask about nodes, or about the budget without ids.

        Args:
            ids: at most as many as one query may have.
            limit: seconds to wait for a connection; None to wait for ever.

        Raises:
            PeerLostError: the data party is away.
            PeerError: it is somebody else, or sent something that it may not send.
            InputError: its settings are others.
        """
        with self._turn():
            try:
                told = self._asked(ids, limit)
            except PeerLostError:
                self.away_since = self.away_since or monotonic()
                raise
            self.away_since = None
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
    def _turn(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=BUSY):
            raise PeerLostError(f"{self._peer} has not answered an earlier query yet")
        try:
            yield
        finally:
            self._lock.release()

    def _asked(self, ids: IdTexts, limit: float | None) -> Told:
        is_fresh = self._open is None
        while True:
            try:
                _, link, snapshot = self._open or self._met(limit)
                self._number += 1
                link.send(Query(number=self._number, ids=ids))
                return snapshot, self._checked(link.receive(), ids)
            except PeerLostError as error:
                self._drop(parting_of(error))
                if is_fresh:
                    raise
                is_fresh = True  # the old connection is gone: one more attempt, with a new one
            except BaseException as error:
                self._drop(parting_of(error))
                raise

    def _met(self, limit: float | None) -> tuple[Channel, Link, str]:
        channel = self._connect(limit)
        link = Link(Role.LABEL, channel, ASKING)
        try:
            hello = self._greeted(link)
        except BaseException as error:
            channel.close(parting_of(error))
            raise
        self._open = channel, link, hello.snapshot
        return self._open

    def _greeted(self, link: Link) -> AnswererHello:
        run = self._run
        try:
            hello = link.expect(AnswererHello)
        except RemoteProtocolError:
            raise PeerError(
                f"{self._peer} does not answer questions: it is in a training session, or has "
                f"another version; it should run `vesper party data --config FILE --answer`"
            ) from None
        link.send(AskerHello(PROTOCOL_VERSION, run.contract, run.session, run.stage))
        refuse_other(hello, run.contract)
        if hello.session != run.session:
            raise PeerError(f"{self._peer} answers for the model of another run than this one")
        if not _NAME.fullmatch(hello.snapshot):
            raise RemoteProtocolError(f"{self._peer} sent a name of a snapshot that is none")
        return hello

    def _checked(self, reply: object, ids: IdTexts) -> Answer | Refusal:
        """Refuse a reply to another query, about other ids, or with rows that do not fit them."""
        if not isinstance(reply, Answer | Refusal) or reply.number != self._number:
            raise RemoteProtocolError(f"{self._peer} sent a reply to another query")
        if isinstance(reply, Refusal):
            if len(reply.reason) > LONGEST_REASON or not reply.reason.isprintable():
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

    def _drop(self, why: Parting) -> None:
        if self._open is not None:
            self._open[0].close(why)
            self._open = None
