"""Channels and seats of several data parties, as the label party's file has them."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from vesper.deployment.config.multi_party_config import LabelTable
from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.connect import Lost, meeting_place, party_channel, waiting_shown
from vesper.deployment.own_graph import OwnGraph
from vesper.deployment.state_folder import held, is_anothers, own_state
from vesper.errors import InputError, PeerLostError
from vesper.progress import Progress
from vesper.protocol.turns import Role
from vesper.session.label_side import Seat
from vesper.session.peer import Link
from vesper.session.peer_group import Absence
from vesper.transport.channel import closing_in_words
from vesper.transport.close_reason import Parting, parting_of
from vesper.transport.durable_channel import LastingChannel
from vesper.transport.stream import Waiting


@contextmanager
def own_states(table: LabelTable, *, resume: bool) -> Iterator[Path]:
    """Hold the folders of all pairs; those that had not begun yet may begin when others go on.

    Raises:
        InputError: something has begun here, or nothing has, or nobody has approved it.
    """
    if not table.parties:
        with own_state(table.own, resume=resume) as state:
            yield state
        return
    state = table.own.party.state
    begun = [(pair.party.state / "session").exists() for pair in table.pairs]
    if resume and not any(begun):
        raise InputError(f"{state}: there is no run to go on with; start without --resume")
    if (state / "result").exists():
        raise InputError(f"{state}: this run is finished; its result is in {state / 'result'}")
    with ExitStack() as stack:
        for pair, has_begun in zip(table.pairs, begun, strict=True):
            stack.enter_context(
                own_state(pair, resume=resume and has_begun, is_one_of_several=True)
            )
        stack.enter_context(held(state))
        yield state


@contextmanager
def seated_channel(
    table: LabelTable, number: int, graph: OwnGraph | None, progress: Progress, lost: Lost
) -> Iterator[LastingChannel]:
    """Open the channel to one data party."""
    pair = table.pairs[number]
    waiting = waiting_shown(pair, progress)
    if may_leave(table, number):
        waiting = _at_most(pair, waiting)
    if graph is not None:
        waiting = _unless_failed(graph, waiting)
    is_own = graph is not None and table.parties[number].own
    place = graph.place if graph is not None and is_own else meeting_place
    with place(pair, waiting=waiting) as connect:
        channel = party_channel(pair, connect, lost)

        def word(error: BaseException) -> Parting:
            """Who is not the reason may come back."""
            is_spared = bool(table.parties) and is_anothers(error, pair, sent=channel.counts[0])
            return Parting.FAULT if is_spared else parting_of(error)

        with closing_in_words(channel, word):
            yield channel


def seats_of(table: LabelTable, channels: Sequence[LastingChannel]) -> list[Seat]:
    """Give each data party its seat."""
    return [
        Seat(
            pair.shared,
            Link(Role.LABEL, channel),
            pair.party.peer,
            absence=Absence(pair.party.state / "left") if may_leave(table, number) else None,
            write_down=channel.go_on,
        )
        for number, (pair, channel) in enumerate(zip(table.pairs, channels, strict=True))
    ]


def may_leave(table: LabelTable, number: int) -> bool:
    """Whether the run goes on without this data party when it is lost."""
    return bool(table.parties) and table.parties[number].when_lost == "go-on"


def _unless_failed(graph: OwnGraph, waiting: Waiting) -> Waiting:
    """Wait for nobody once the own graph has failed."""

    def told(seconds: float) -> None:
        graph.refuse_failed()
        waiting(seconds)

    return told


def _at_most(pair: PartyConfig, waiting: Waiting) -> Waiting:
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
