"""The label party's end of a session: meet, agree, answer, settle.

Data parties at the label party's table: meet each, then see all of them as one.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vesper.errors import RemoteProtocolError
from vesper.graph.labels import SPLITS, LabelHoldings
from vesper.method.base import Method, Sizes
from vesper.method.settings import Config
from vesper.model.decoders import Decoder, JoinedDecoder
from vesper.model.objective import Objective
from vesper.model.objective_factory import Responses, make_objective, num_outputs
from vesper.party.label_party import LabelParty
from vesper.progress import Progress, silent
from vesper.protocol.messages import DataHello, Farewell, LabelHello, Roster
from vesper.session.checkpoint import Checkpoints
from vesper.session.contract import canonical
from vesper.session.loop import NOWHERE, answer
from vesper.session.observer import UNTOLD, Told
from vesper.session.peer import PROTOCOL_VERSION, Link, RemoteDataParty, refuse_other
from vesper.session.peer_group import Absence, Member, RemoteDataParties
from vesper.session.run_spec import (
    Agreement,
    agreement_of,
    least_private,
    refuse_other_stages,
    refuse_unusable_labels,
)


@dataclass(frozen=True)
class Seat:
    """A data party at the label party's table."""

    config: Config
    """What the two have approved; of several parties, budgets alone may differ."""
    link: Link
    name: str = "the data party"
    method: Method | None = None
    """None: the one that the settings name."""
    absence: Absence | None = None
    """Where the run may go on without it."""
    write_down: Callable[[], None] = lambda: None
    """Keeps what came last, before anything that follows from it is sent to others."""


def meet(seat: Seat, labels: LabelHoldings) -> Agreement:
    """Say hello to a data party and find out how the run will go."""
    config, link, contract = seat.config, seat.link, canonical(seat.config)
    hello = link.expect(DataHello)
    outputs = num_outputs(config.run.task, labels.classes)
    link.send(LabelHello(version=PROTOCOL_VERSION, contract=contract, num_outputs=outputs))
    refuse_other(hello, contract)  # after the answer, so that the peer can say what differs, too
    counts = {split: len(labels.rows(split)) for split in SPLITS}
    enough = max(sum(counts.values()), 1)
    if not (0 < hello.num_features < 1 << 31 and enough <= hello.num_nodes < 1 << 40):
        raise RemoteProtocolError(
            f"the peer speaks of {hello.num_nodes} nodes with {hello.num_features} features, "
            f"expected at least {enough} with at least one; `vesper align` finds ids that it lacks"
        )
    link.agree_on(config.run.wire, seed=config.run.seed)
    sizes = Sizes(
        num_nodes=hello.num_nodes,
        num_train=counts["train"],
        num_features=hello.num_features,
        num_classes=outputs,
    )
    return agreement_of(config, sizes, num_val=counts["val"], num_test=counts["test"])


def joined(
    seats: Sequence[Seat],
    decoders: Sequence[Decoder],
    *,
    num_rows: int,
    lost: Callable[[str], None],
) -> tuple[RemoteDataParty | RemoteDataParties, Decoder]:
    """One data party as it is; several as one."""
    remotes = [RemoteDataParty(seat.link) for seat in seats]
    if len(seats) == 1:
        return remotes[0], decoders[0]
    decoder = JoinedDecoder(decoders)
    members = [
        Member(seat.name, remote, shape, seat.absence, seat.write_down)
        for seat, remote, shape in zip(seats, remotes, decoder.shapes, strict=True)
    ]

    def leave(member: int, last_stage: int) -> None:
        decoder.leave(member, last_stage=last_stage)

    return RemoteDataParties(members, num_rows=num_rows, leave=leave, lost=lost), decoder


Watch = Callable[[LabelParty, Objective], None]
"""Is given the party once it is there, to show how it does."""


@dataclass(frozen=True)
class LabelOutcome:
    """What the label party has after a session."""

    agreements: tuple[Agreement, ...]
    """One a data party, in order."""
    label_side: Decoder
    """With the weights of the best stage."""
    metric: str
    stages: list[dict[str, float]]
    """Validation and test metric a stage."""
    bytes_sent: int
    best_stage: int
    """The stage that validation has chosen (`party.stage_selection`)."""
    gone: tuple[str, ...] = ()
    """Data parties that the run went on without."""

    @property
    def agreement(self) -> Agreement:
        """With the first data party."""
        return self.agreements[0]


def label_end(
    seats: Sequence[Seat],
    labels: LabelHoldings,
    *,
    checkpoints: Checkpoints = NOWHERE,
    progress: Progress = silent,
    watch: Watch = lambda party, objective: None,
    told: Told = UNTOLD,
    responses: Responses | None = None,
    lost: Callable[[str], None] = lambda why: None,
) -> LabelOutcome:
    """Go through a whole session as the label party; with responses to labels if they are asked."""
    config = seats[0].config
    refuse_unusable_labels(config, labels)
    if (responses is None) != (config.privacy.label_epsilon is None):
        raise ValueError("expected responses to labels where label_epsilon is set, and only there")
    objective = objective_of(config, labels, responses)
    agreed = [meet(seat, labels) for seat in seats]
    refuse_other_stages([seat.name for seat in seats], [each.itinerary for each in agreed])
    decoders = [
        (seat.method or each.method).label_side(each.config, each.sizes)
        for seat, each in zip(seats, agreed, strict=True)
    ]
    run, itinerary = config.run, agreed[0].itinerary
    data_side, label_side = joined(seats, decoders, num_rows=itinerary.num_rows, lost=lost)
    party = LabelParty(
        objective,
        label_side,
        learning_rate=run.learning_rate,
        weight_decay=run.weight_decay,
        patience=run.patience,
        local_updates=run.local_updates,
    )
    watch(party, objective)
    weakest = least_private([each.noise_plan for each in agreed])
    told.agreed(weakest, itinerary.most, metric=objective.metric)
    for seat in seats:
        seat.link.send(roster_of(labels, objective, config))
    stages = answer(
        party,
        data_side,
        itinerary,
        checkpoints=checkpoints,
        progress=progress,
        note=lambda: note_of(party, objective),
        told=told,
    )
    gone = data_side.gone
    for seat in seats:
        if seat.name not in gone:
            seat.link.send(Farewell())
    sent = sum(seat.link.bytes_sent for seat in seats)
    return LabelOutcome(
        agreements=tuple(agreed),
        label_side=label_side,
        metric=objective.metric,
        stages=stages,
        bytes_sent=sent,
        best_stage=party.chosen_stage,
        gone=tuple(gone),
    )


def objective_of(
    config: Config, labels: LabelHoldings, responses: Responses | None = None
) -> Objective:
    """What the label party minimises: labels in the order of the roster."""
    order = np.concatenate([labels.rows(split) for split in SPLITS])
    return make_objective(
        config.run.task,
        labels.classes,
        labels.labels[order],
        num_train=len(labels.rows("train")),
        balanced=config.run.class_weights == "balanced",
        responses=responses,
    )


def roster_of(labels: LabelHoldings, objective: Objective, config: Config) -> Roster:
    """Ids by split, and what training nodes say where the contract lends their labels."""
    train, val, test = (tuple(map(str, labels.ids.take(labels.rows(split)))) for split in SPLITS)
    speaking = np.arange(len(train) if config.run.label_messages else 0)
    return Roster(train=train, val=val, test=test, voices=objective.voices(speaking))


def note_of(party: LabelParty, objective: Objective) -> str:
    """Loss and best metric so far, for people to see."""
    best = party.best  # not finite until validation has spoken
    metric = f"{objective.metric} {best:.2f}" if math.isfinite(best) else ""
    loss = f"loss {party.last_loss:.3f}" if math.isfinite(party.last_loss) else ""
    return "  ".join(part for part in (loss, metric) if part)
