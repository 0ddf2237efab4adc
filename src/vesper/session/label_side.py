"""The label party's end of a session: meet, agree, answer, settle.

Data parties at the label party's table: meet each, then see all of them as one.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vesper.errors import RemoteProtocolError
from vesper.graph.labels import SPLITS, LabelHoldings
from vesper.method.base import Method, PublicSizes
from vesper.method.settings import Config
from vesper.model.decoders import Decoder, JoinedDecoder
from vesper.model.objective import Objective
from vesper.model.objective_factory import LabelResponses, make_objective, num_outputs
from vesper.party.label_party import LabelParty
from vesper.progress import Progress, no_progress
from vesper.protocol.messages import DataHello, Farewell, LabelHello, Roster
from vesper.session.checkpoint import Checkpoints
from vesper.session.contract import contract_text
from vesper.session.loop import NO_CHECKPOINTS, run_label_side
from vesper.session.observer import UNTOLD, Told
from vesper.session.peer import PROTOCOL_VERSION, Link, RemoteDataParty, refuse_other_contract
from vesper.session.peer_group import Absence, DataPeerGroup, GroupMember
from vesper.session.run_spec import (
    RunSpec,
    least_private,
    make_run_spec,
    refuse_other_stages,
    refuse_unusable_labels,
)


@dataclass(frozen=True)
class DataPeer:
    """A data party at the label party's table."""

    config: Config
    """What the two have approved; of several parties, budgets alone may differ."""
    link: Link
    name: str = "the data party"
    method: Method | None = None
    """None: the one that the settings name."""
    absence: Absence | None = None
    """Where the run may go on without it."""
    persist_received: Callable[[], None] = lambda: None
    """Keeps what came last, before anything that follows from it is sent to others."""


def agree_with_data_peer(data_peer: DataPeer, labels: LabelHoldings) -> RunSpec:
    """Say hello to a data party and find out how the run will go."""
    config, link, contract = data_peer.config, data_peer.link, contract_text(data_peer.config)
    hello = link.expect(DataHello)
    outputs = num_outputs(config.run.task, labels.classes)
    link.send(LabelHello(version=PROTOCOL_VERSION, contract=contract, num_outputs=outputs))
    refuse_other_contract(
        hello, contract
    )  # after the answer, so that the peer can say what differs, too
    counts = {split: len(labels.rows(split)) for split in SPLITS}
    enough = max(sum(counts.values()), 1)
    if not (0 < hello.num_features < 1 << 31 and enough <= hello.num_nodes < 1 << 40):
        raise RemoteProtocolError(
            f"the peer speaks of {hello.num_nodes} nodes with {hello.num_features} features, "
            f"expected at least {enough} with at least one; `vesper align` finds ids that it lacks"
        )
    link.set_wire_format(config.run.wire, seed=config.run.seed)
    sizes = PublicSizes(
        num_nodes=hello.num_nodes,
        num_train=counts["train"],
        num_features=hello.num_features,
        num_classes=outputs,
    )
    return make_run_spec(config, sizes, num_val=counts["val"], num_test=counts["test"])


def join_data_peers(
    data_peers: Sequence[DataPeer],
    decoders: Sequence[Decoder],
    *,
    num_rows: int,
    lost: Callable[[str], None],
) -> tuple[RemoteDataParty | DataPeerGroup, Decoder]:
    """One data party as it is; several as one."""
    remotes = [RemoteDataParty(data_peer.link) for data_peer in data_peers]
    if len(data_peers) == 1:
        return remotes[0], decoders[0]
    decoder = JoinedDecoder(decoders)
    members = [
        GroupMember(data_peer.name, remote, shape, data_peer.absence, data_peer.persist_received)
        for data_peer, remote, shape in zip(data_peers, remotes, decoder.shapes, strict=True)
    ]

    def leave(member: int, last_stage: int) -> None:
        decoder.leave(member, last_stage=last_stage)

    return DataPeerGroup(members, num_rows=num_rows, leave=leave, lost=lost), decoder


Watch = Callable[[LabelParty, Objective], None]
"""Is given the party once it is there, to show how it does."""


@dataclass(frozen=True)
class LabelOutcome:
    """What the label party has after a session."""

    run_specs: tuple[RunSpec, ...]
    """One a data party, in order."""
    label_side: Decoder
    """With the weights of the best stage."""
    metric: str
    stages: list[dict[str, float]]
    """Validation and test metric a stage."""
    bytes_sent: int
    best_stage: int
    """The stage that validation has chosen (`party.stage_selection`)."""
    lost_peers: tuple[str, ...] = ()
    """Data parties that the run went on without."""

    @property
    def run_spec(self) -> RunSpec:
        """With the first data party."""
        return self.run_specs[0]


def run_label_session(
    data_peers: Sequence[DataPeer],
    labels: LabelHoldings,
    *,
    checkpoints: Checkpoints = NO_CHECKPOINTS,
    progress: Progress = no_progress,
    watch: Watch = lambda party, objective: None,
    told: Told = UNTOLD,
    responses: LabelResponses | None = None,
    lost: Callable[[str], None] = lambda why: None,
) -> LabelOutcome:
    """Go through a whole session as the label party; with responses to labels if they are asked."""
    config = data_peers[0].config
    refuse_unusable_labels(config, labels)
    if (responses is None) != (config.privacy.label_epsilon is None):
        raise ValueError("expected responses to labels where label_epsilon is set, and only there")
    objective = label_objective(config, labels, responses)
    agreed = [agree_with_data_peer(data_peer, labels) for data_peer in data_peers]
    refuse_other_stages(
        [data_peer.name for data_peer in data_peers], [each.schedule for each in agreed]
    )
    decoders = [
        (data_peer.method or each.method).make_decoder(each.config, each.sizes)
        for data_peer, each in zip(data_peers, agreed, strict=True)
    ]
    run, schedule = config.run, agreed[0].schedule
    data_side, label_side = join_data_peers(
        data_peers, decoders, num_rows=schedule.num_rows, lost=lost
    )
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
    told.agreed(weakest, schedule.max_work, metric=objective.metric)
    for data_peer in data_peers:
        data_peer.link.send(make_roster(labels, objective, config))
    stages = run_label_side(
        party,
        data_side,
        schedule,
        checkpoints=checkpoints,
        progress=progress,
        note=lambda: progress_note(party, objective),
        told=told,
    )
    lost_peers = data_side.lost_peers
    for data_peer in data_peers:
        if data_peer.name not in lost_peers:
            data_peer.link.send(Farewell())
    sent = sum(data_peer.link.bytes_sent for data_peer in data_peers)
    return LabelOutcome(
        run_specs=tuple(agreed),
        label_side=label_side,
        metric=objective.metric,
        stages=stages,
        bytes_sent=sent,
        best_stage=party.chosen_stage,
        lost_peers=tuple(lost_peers),
    )


def label_objective(
    config: Config, labels: LabelHoldings, responses: LabelResponses | None = None
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


def make_roster(labels: LabelHoldings, objective: Objective, config: Config) -> Roster:
    """Ids by split, and what training nodes say where the contract lends their labels."""
    train, val, test = (tuple(map(str, labels.ids.take(labels.rows(split)))) for split in SPLITS)
    speaking = np.arange(len(train) if config.run.label_messages else 0)
    return Roster(
        train=train, val=val, test=test, label_posteriors=objective.label_posteriors(speaking)
    )


def progress_note(party: LabelParty, objective: Objective) -> str:
    """Loss and best metric so far, for people to see."""
    best = party.best_metric  # not finite until validation has spoken
    metric = f"{objective.metric} {best:.2f}" if math.isfinite(best) else ""
    loss = f"loss {party.last_loss:.3f}" if math.isfinite(party.last_loss) else ""
    return "  ".join(part for part in (loss, metric) if part)
