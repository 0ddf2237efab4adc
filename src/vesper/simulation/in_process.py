"""All parties in one process, trained through session, protocol and memory channels.

What two parties know before anything is sent is their `Agreement`; what comes out is `Trained`: all
sides with the weights that validation chose, and how good each stage was.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from vesper.errors import PeerError
from vesper.graph.holdings import DataHoldings
from vesper.graph.labels import LabelHoldings
from vesper.mechanism.door import Door
from vesper.model.decoders import Decoder
from vesper.model.objective import Objective
from vesper.model.objective_factory import Responses
from vesper.party.label_party import LabelParty
from vesper.party.representation import Representation
from vesper.progress import Progress, silent
from vesper.protocol.messages import Farewell
from vesper.protocol.turns import Role
from vesper.session.data_side import DataOutcome, data_end
from vesper.session.label_side import LabelOutcome, Seat, label_end, note_of
from vesper.session.loop import NOWHERE
from vesper.session.observer import UNTOLD, Told
from vesper.session.peer import Link
from vesper.session.run_spec import Agreement
from vesper.simulation.stage0_cache import Beginning
from vesper.transport.channel import closing_in_words
from vesper.transport.memory import MemoryChannel, memory_pair


@dataclass(frozen=True)
class Holder:
    """A data party in this process."""

    agreement: Agreement
    data: DataHoldings
    door: Door
    name: str = "the data party"


@dataclass(frozen=True)
class Trained:
    """All sides after training, and what was measured on the way."""

    data_sides: tuple[Representation, ...]
    label_side: Decoder
    """With the weights of the best stage."""
    metric: str
    stages: list[dict[str, float]]
    """Validation and test metric a stage."""
    best_stage: int
    """The stage that validation has chosen."""
    bytes_to_label_party: int
    bytes_to_data_party: int

    @property
    def data_side(self) -> Representation:
        """Of the first data party."""
        return self.data_sides[0]


def train(
    agreement: Agreement,
    data: DataHoldings,
    labels: LabelHoldings,
    door: Door,
    *,
    progress: Progress = silent,
    told: Told = UNTOLD,
    responses: Responses | None = None,
) -> Trained:
    """Let a data party and the label party meet; the label end tells how it goes."""
    holder = Holder(agreement, data, door)
    return train_together([holder], labels, progress=progress, told=told, responses=responses)


def train_together(
    holders: Sequence[Holder],
    labels: LabelHoldings,
    *,
    progress: Progress = silent,
    told: Told = UNTOLD,
    responses: Responses | None = None,
    beginning: Beginning | None = None,
) -> Trained:
    """Let all ends meet, each in a thread; the first data party's is this one.

    A beginning is for one data party.
    """
    pairs = [memory_pair() for _ in holders]
    data_links = [Link(Role.DATA, data_channel) for data_channel, _ in pairs]
    label_links = [Link(Role.LABEL, label_channel) for _, label_channel in pairs]
    watched: list[tuple[LabelParty, Objective]] = []

    def label_thread() -> LabelOutcome:
        # Both sides approved the same settings; noise may be planned for less than their epsilon.
        seats = [
            Seat(holder.agreement.config, link, holder.name, holder.agreement.method)
            for holder, link in zip(holders, label_links, strict=True)
        ]
        try:
            return label_end(
                seats,
                labels,
                watch=lambda party, objective: watched.append((party, objective)),
                told=told,
                responses=responses,
                checkpoints=beginning.label_end if beginning else NOWHERE,
            )
        finally:
            for _, label_channel in pairs:
                label_channel.close()

    def data_thread(k: int, **shown: Any) -> DataOutcome:
        return _drive(holders[k], data_links[k], pairs[k][0], **shown)

    with ThreadPoolExecutor(max_workers=len(holders)) as pool:
        answering = pool.submit(label_thread)
        others = [pool.submit(data_thread, k) for k in range(1, len(holders))]
        note = partial(_note, watched)
        start = beginning.data_end if beginning else NOWHERE
        first = _outcome_of(lambda: data_thread(0, progress=progress, note=note, checkpoints=start))
    ours = [each.result() for each in _cause_first([first, *others], answering)]
    theirs = answering.result()
    for outcome in ours:
        outcome.data_side.settle(theirs.best_stage)
    return Trained(
        data_sides=tuple(outcome.data_side for outcome in ours),
        label_side=theirs.label_side,
        metric=theirs.metric,
        stages=theirs.stages,
        best_stage=theirs.best_stage,
        bytes_to_label_party=sum(link.bytes_sent for link in data_links),
        bytes_to_data_party=sum(link.bytes_sent for link in label_links),
    )


def _drive(holder: Holder, link: Link, channel: MemoryChannel, **shown: Any) -> DataOutcome:
    agreement = holder.agreement
    with closing_in_words(channel):
        outcome = data_end(
            agreement.config,
            holder.data,
            link,
            prepare=lambda agreed: (holder.door, agreement),
            **shown,
        )
        link.expect(Farewell)
    return outcome


def _note(watched: list[tuple[LabelParty, Objective]]) -> str:
    return note_of(*watched[0]) if watched else ""


def _outcome_of(act: Callable[[], DataOutcome]) -> "Future[DataOutcome]":
    """Act here and now; keep what came of it."""
    future: Future[DataOutcome] = Future()
    try:
        future.set_result(act())
    except Exception as error:
        future.set_exception(error)
    return future


def _cause_first(
    ours: list["Future[DataOutcome]"], answering: "Future[LabelOutcome]"
) -> list["Future[DataOutcome]"]:
    """Raise what went wrong, not what it did to the others: they say that a peer is gone."""
    found = [each.exception() for each in ours] + [answering.exception()]
    errors = [error for error in found if error is not None]
    if errors:
        raise min(errors, key=lambda error: isinstance(error, PeerError))
    return ours
