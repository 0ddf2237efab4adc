"""Channels to the data parties in the label party's file, and a `DataPeer` for each."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from vesper.deployment.config.multi_party_config import MultiPartyConfig
from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.connect import open_party_channel, peer_connector, show_waiting
from vesper.deployment.own_graph import OwnGraph
from vesper.deployment.state_folder import (
    hold_state_folder,
    is_about_another_party,
    state_folder_lock,
)
from vesper.errors import InputError, PeerLostError
from vesper.protocol.turns import Role
from vesper.session.label_side import DataPeer
from vesper.session.observer import SessionObserver
from vesper.session.peer import Link
from vesper.session.peer_group import Absence
from vesper.transport.channel import closing_with_reason
from vesper.transport.close_reason import CloseReason, close_reason_for
from vesper.transport.durable_channel import DurableChannel
from vesper.transport.stream import Waiting


@contextmanager
def hold_state_folders(table: MultiPartyConfig, *, resume: bool) -> Iterator[Path]:
    """Hold the state folders of all pairs; on resume, pairs that never started may start.

    Raises:
        InputError: a run has started here, or none to resume has, or a contract is not approved.
    """
    if not table.peer_settings:
        with hold_state_folder(table.own, resume=resume) as state:
            yield state
        return
    state = table.own.party.state
    started = [(pair.party.state / "session").exists() for pair in table.peer_configs]
    if resume and not any(started):
        raise InputError(f"{state}: there is no run to resume; start without --resume")
    if (state / "result").exists():
        raise InputError(f"{state}: this run is finished; its result is in {state / 'result'}")
    with ExitStack() as stack:
        for pair, has_started in zip(table.peer_configs, started, strict=True):
            stack.enter_context(
                hold_state_folder(pair, resume=resume and has_started, is_multi_party=True)
            )
        stack.enter_context(state_folder_lock(state))
        yield state


@contextmanager
def data_peer_channel(
    table: MultiPartyConfig, number: int, graph: OwnGraph | None, observer: SessionObserver
) -> Iterator[DurableChannel]:
    """Open the channel to one data party."""
    pair = table.peer_configs[number]
    waiting = show_waiting(pair, observer)
    if may_continue_without(table, number):
        waiting = _limit_waiting(pair, waiting)
    if graph is not None:
        waiting = _stop_if_own_graph_failed(graph, waiting)
    is_own = graph is not None and table.peer_settings[number].own
    connector = graph.connector if graph is not None and is_own else peer_connector
    with connector(pair, waiting=waiting, warn=observer.warning) as connect:
        channel = open_party_channel(pair, connect, observer, waiting=waiting)

        def reason_for(error: BaseException) -> CloseReason:
            """Let a data party that is not the cause of the error come back."""
            is_spared = bool(table.peer_settings) and is_about_another_party(
                error, pair, sent=channel.counts[0]
            )
            return CloseReason.FAULT if is_spared else close_reason_for(error)

        with closing_with_reason(channel, reason_for):
            yield channel


def make_data_peers(table: MultiPartyConfig, channels: Sequence[DurableChannel]) -> list[DataPeer]:
    """Make the `DataPeer` of each data party."""
    return [
        DataPeer(
            pair.shared,
            Link(Role.LABEL, channel),
            pair.party.peer,
            absence=Absence(pair.party.state / "left")
            if may_continue_without(table, number)
            else None,
            persist_received=channel.persist_received,
        )
        for number, (pair, channel) in enumerate(zip(table.peer_configs, channels, strict=True))
    ]


def may_continue_without(table: MultiPartyConfig, number: int) -> bool:
    """Whether the run continues without this data party if it is lost."""
    return bool(table.peer_settings) and table.peer_settings[number].when_lost == "go-on"


def _stop_if_own_graph_failed(graph: OwnGraph, waiting: Waiting) -> Waiting:
    """Stop waiting once the own graph has failed."""

    def report(seconds: float) -> None:
        graph.raise_if_failed()
        waiting(seconds)

    return report


def _limit_waiting(pair: PartyConfig, waiting: Waiting) -> Waiting:
    """Wait for a message that is due no longer than the patience, even if the peer is alive."""
    own = pair.party

    def report(seconds: float) -> None:
        if seconds > own.patience:
            raise PeerLostError(
                f"{own.peer} has not sent the message that is due for {seconds:.0f} s (patience "
                f"{own.patience:g} s)"
            )
        waiting(seconds)

    return report
