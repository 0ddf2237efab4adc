"""Channels and seats of several data parties, as the label party's file has them."""

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
    """Hold the folders of all pairs; those that had not begun yet may begin when others go on.

    Raises:
        InputError: something has begun here, or nothing has, or nobody has approved it.
    """
    if not table.peer_settings:
        with hold_state_folder(table.own, resume=resume) as state:
            yield state
        return
    state = table.own.party.state
    begun = [(pair.party.state / "session").exists() for pair in table.peer_configs]
    if resume and not any(begun):
        raise InputError(f"{state}: there is no run to go on with; start without --resume")
    if (state / "result").exists():
        raise InputError(f"{state}: this run is finished; its result is in {state / 'result'}")
    with ExitStack() as stack:
        for pair, has_begun in zip(table.peer_configs, begun, strict=True):
            stack.enter_context(
                hold_state_folder(pair, resume=resume and has_begun, is_multi_party=True)
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
    with connector(pair, waiting=waiting) as connect:
        channel = open_party_channel(pair, connect, observer)

        def reason_for(error: BaseException) -> CloseReason:
            """Who is not the reason may come back."""
            is_spared = bool(table.peer_settings) and is_about_another_party(
                error, pair, sent=channel.counts[0]
            )
            return CloseReason.FAULT if is_spared else close_reason_for(error)

        with closing_with_reason(channel, reason_for):
            yield channel


def make_data_peers(table: MultiPartyConfig, channels: Sequence[DurableChannel]) -> list[DataPeer]:
    """Give each data party its seat."""
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
    """Whether the run goes on without this data party when it is lost."""
    return bool(table.peer_settings) and table.peer_settings[number].when_lost == "go-on"


def _stop_if_own_graph_failed(graph: OwnGraph, waiting: Waiting) -> Waiting:
    """Wait for nobody once the own graph has failed."""

    def told(seconds: float) -> None:
        graph.raise_if_failed()
        waiting(seconds)

    return told


def _limit_waiting(pair: PartyConfig, waiting: Waiting) -> Waiting:
    """Wait for what is due no longer than the patience, even for a peer that is alive."""
    own = pair.party

    def told(seconds: float) -> None:
        if seconds > own.patience:
            raise PeerLostError(
                f"{own.peer} has not sent for {seconds:.0f} s what is due (patience "
                f"{own.patience:g} s)"
            )
        waiting(seconds)

    return told
