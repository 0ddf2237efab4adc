"""Connection of a party to its peer, the durable channel on top, and the party's journal.

One party listens, the other connects; each identifies the other by its certificate, and reads its
own files again for every connection (`certificate_watch`). What crosses
the durable channel is logged in the state folder, and so is the journal.

A host that nobody knows is a mistake in the settings when a party starts, and may be a failure of
the network later: before the first connection it ends the party, after it the party waits.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from vesper.deployment.certificate_watch import CertificateWatch, Warn, ignore_warning
from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.handshake import refuse_unknown_host
from vesper.session.journal import Journal, open_journal
from vesper.session.observer import SessionObserver
from vesper.transport.channel import Channel, closing_with_reason
from vesper.transport.durable_channel import DurableChannel
from vesper.transport.grpc_channel import Listener, connect
from vesper.transport.reconnect import Connect
from vesper.transport.stream import Waiting, ignore_waiting


class PeerConnector(Protocol):
    """How a party reaches its peer."""

    def __call__(
        self, config: PartyConfig, *, waiting: Waiting = ignore_waiting, warn: Warn = ignore_warning
    ) -> AbstractContextManager[Connect]:
        """Yield a function that connects to the peer, as often as it is called."""


QUIET_SECONDS = 2.0
"""Seconds of waiting that are not worth reporting."""


def show_waiting(config: PartyConfig, observer: SessionObserver) -> Waiting:
    """Return a function that reports which peer this side waits for, where, and how long."""
    own = config.party
    where = f" at {own.connect}" if own.connect else f", listening at {own.listen}"

    def waiting(seconds: float) -> None:
        if seconds > QUIET_SECONDS:
            observer.progress(f"waiting for {own.peer}{where}: seconds", int(seconds), 0)

    return waiting


@contextmanager
def peer_connector(
    config: PartyConfig, *, waiting: Waiting = ignore_waiting, warn: Warn = ignore_warning
) -> Iterator[Connect]:
    """Yield a function that connects to the peer, as often as it is called.

    The side that listens does so until the block ends.

    Args:
        config: settings of this party.
        waiting: called with the seconds in which nobody has connected, or nothing has arrived.
        warn: receives warnings about certificates of either party.

    Raises:
        InputError: the certificate or the address cannot be used; the host is not known when the
            first connection is opened.
    """
    own, watch = config.party, CertificateWatch(config, warn=warn)
    watch.identity()  # refuses files that cannot be used, before anything is tried
    watch.report()

    def waiting_and_watching(seconds: float) -> None:
        watch.report()
        waiting(seconds)

    if own.listen is not None:
        listener = Listener(
            str(own.listen),
            identity=watch.identity,
            peer=own.peer,
            patience=own.patience,
            waiting=waiting_and_watching,
            admit=watch.refusal_of,
        )
        try:
            yield listener.accept
        finally:
            listener.close()
        return

    has_connected = False

    def dial(limit: float | None) -> Channel:
        nonlocal has_connected
        if not has_connected:
            refuse_unknown_host(own.connect)
        channel = connect(
            str(own.connect),
            identity=watch.identity_for_peer,
            peer=own.peer,
            patience=own.patience,
            waiting=waiting_and_watching,
            limit=limit,
        )
        has_connected = True
        return channel

    yield dial


@contextmanager
def peer_connection(config: PartyConfig, *, waiting: Waiting = ignore_waiting) -> Iterator[Channel]:
    """Yield one connection to the peer; wait for it as `when_lost` says.

    Raises:
        PeerError: the peer is not who it should be, or did not connect.
    """
    limit = None if config.party.when_lost == "wait" else config.party.patience
    with (
        peer_connector(config, waiting=waiting) as connect_to_peer,
        closing_with_reason(connect_to_peer(limit)) as channel,
    ):
        yield channel


def open_party_channel(
    config: PartyConfig,
    connect: Connect,
    observer: SessionObserver,
    *,
    waiting: Waiting = ignore_waiting,
) -> DurableChannel:
    """Open the durable channel; it connects when it is first used, and again after each loss."""
    is_data = config.party.role == "data"
    directions = ("data>label", "label>data")
    return DurableChannel(
        connect,
        config.party.state,
        names_session=is_data,
        directions=directions if is_data else directions[::-1],
        reconnects=config.party.when_lost == "wait",
        lost=observer.warning,
        waiting=waiting,
    )


def open_party_journal(
    config: PartyConfig, *, resume: bool, source: str, observer: SessionObserver
) -> AbstractContextManager[Journal]:
    """Write the journal of a party into its state folder until the block ends."""
    own = config.party
    charges = own.role == "data" or config.shared.privacy.label_epsilon is not None
    return open_journal(
        own.state,
        side=own.role,
        config=config.shared,
        ledger=own.ledger if charges else None,
        resumed=resume,
        source=source,
        observer=observer,
    )
