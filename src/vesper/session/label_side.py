"""The label party's side of a session, with one data party or several.

agree with each data party   hello, contract, run spec
join them                    one decoder and one `DataSide`, whatever their number
run                          `loop.run_label_side`
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.errors import RemoteProtocolError
from vesper.graph.labels import SPLITS, LabelHoldings
from vesper.method.base import Method, PublicSizes
from vesper.method.settings import Config
from vesper.model.decoders import Decoder, JoinedDecoder
from vesper.model.objective import Objective
from vesper.model.objective_factory import LabelResponses, make_objective, num_outputs
from vesper.party.label_party import LabelParty
from vesper.protocol.messages import DataHello, Farewell, LabelHello, Roster
from vesper.session.checkpoint import Checkpoints
from vesper.session.contract import contract_text
from vesper.session.loop import NO_CHECKPOINTS, run_label_side
from vesper.session.observer import NO_OBSERVER, SessionObserver
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
    """One of the data parties, as the label party sees it."""

    config: Config
    """Settings that both have approved; with several parties, only budgets may differ."""
    link: Link
    name: str = "the data party"
    method: Method | None = None
    """Method to use; None: the one that the settings name."""
    absence: Absence | None = None
    """Record of its absence; None: the run cannot continue without it."""
    persist_received: Callable[[], None] = lambda: None
    """Stores the last received frame, before anything derived from it is sent to others."""


def agree_with_data_peer(data_peer: DataPeer, labels: LabelHoldings) -> RunSpec:
    """Exchange greetings with a data party and derive the run spec."""
    config, link, contract = data_peer.config, data_peer.link, contract_text(data_peer.config)
    hello = link.expect(DataHello)
    outputs = num_outputs(config.run.task, labels.classes)
    link.send(LabelHello(version=PROTOCOL_VERSION, contract=contract, num_outputs=outputs))
    # After our own greeting, so that the peer can report the difference as well.
    refuse_other_contract(hello, contract)
    counts = {split: len(labels.rows(split)) for split in SPLITS}
    enough = max(sum(counts.values()), 1)
    if not (0 < hello.num_features < 1 << 31 and enough <= hello.num_nodes < 1 << 40):
        raise RemoteProtocolError(
            f"expected a peer with at least {enough} nodes and one feature, found one with "
            f"{hello.num_nodes} nodes and {hello.num_features} features; `vesper align` lists the "
            f"ids that it lacks"
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
    observer: SessionObserver,
) -> tuple[RemoteDataParty | DataPeerGroup, Decoder]:
    """Join data parties and their decoders into one of each; a single one is returned as is."""
    remotes = [
        RemoteDataParty(data_peer.link, decoder.embedding_shape)
        for data_peer, decoder in zip(data_peers, decoders, strict=True)
    ]
    if len(data_peers) == 1:
        return remotes[0], decoders[0]
    decoder = JoinedDecoder(decoders)
    members = [
        GroupMember(data_peer.name, remote, shape, data_peer.absence, data_peer.persist_received)
        for data_peer, remote, shape in zip(data_peers, remotes, decoder.shapes, strict=True)
    ]

    def leave(member: int, last_stage: int) -> None:
        decoder.leave(member, last_stage=last_stage)

    return DataPeerGroup(members, num_rows=num_rows, leave=leave, observer=observer), decoder


@dataclass(frozen=True)
class LabelOutcome:
    """What the label party has after a session."""

    run_specs: tuple[RunSpec, ...]
    """Run spec with each data party, in order."""
    label_side: Decoder
    """Decoder with the weights of the best stage."""
    metric: str
    stages: list[dict[str, float]]
    """Validation and test metric of each stage."""
    best_stage: int
    """Stage that validation chose (`party.stage_selection`)."""
    validation_scores: NDArray[np.float64]
    """Scores of the best stage on validation nodes, in the order of the label table."""
    lost_peers: tuple[str, ...] = ()
    """Data parties that the run continued without."""

    @property
    def run_spec(self) -> RunSpec:
        """Run spec with the first data party."""
        return self.run_specs[0]


def run_label_session(
    data_peers: Sequence[DataPeer],
    labels: LabelHoldings,
    *,
    checkpoints: Checkpoints = NO_CHECKPOINTS,
    observer: SessionObserver = NO_OBSERVER,
    responses: LabelResponses | None = None,
) -> LabelOutcome:
    """Run a whole session as the label party.

    Args:
        data_peers: the data parties.
        labels: the label table.
        checkpoints: where the run resumes.
        observer: receives progress, epochs and warnings.
        responses: randomised responses that replace the labels, where `label_epsilon` is set.
    """
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
        data_peers, decoders, num_rows=schedule.num_rows, observer=observer
    )
    party = LabelParty(
        objective,
        label_side,
        learning_rate=run.learning_rate,
        weight_decay=run.weight_decay,
        patience=run.patience,
        local_updates=run.local_updates,
        keep_last=run.keep_epoch == "last",
    )
    weakest = least_private([each.noise_plan for each in agreed])
    observer.agreed(weakest, schedule.max_work, metric=objective.metric)
    for data_peer in data_peers:
        data_peer.link.send(make_roster(labels, objective, config))
    stages = run_label_side(
        party,
        data_side,
        schedule,
        checkpoints=checkpoints,
        observer=observer,
    )
    lost_peers = data_side.lost_peers
    for data_peer in data_peers:
        if data_peer.name not in lost_peers:
            data_peer.link.send(Farewell())
    return LabelOutcome(
        run_specs=tuple(agreed),
        label_side=label_side,
        metric=objective.metric,
        stages=stages,
        best_stage=party.chosen_stage,
        validation_scores=party.chosen_validation_scores(),
        lost_peers=tuple(lost_peers),
    )


def label_objective(
    config: Config, labels: LabelHoldings, responses: LabelResponses | None = None
) -> Objective:
    """Return the labels in the order of the roster, with their loss and metric."""
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
    """Make the roster: ids by split, and label posteriors if the contract shares them."""
    train, val, test = (tuple(map(str, labels.ids.take(labels.rows(split)))) for split in SPLITS)
    shared = np.arange(len(train) if config.run.label_messages else 0)
    return Roster(
        train=train, val=val, test=test, label_posteriors=objective.label_posteriors(shared)
    )
