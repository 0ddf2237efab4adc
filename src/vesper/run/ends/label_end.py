"""The label party's end of a session: meet, agree, answer, settle."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vesper.errors import RemoteProtocolError
from vesper.graph.labels import SPLITS, LabelHoldings
from vesper.method.method import Method, Sizes
from vesper.method.settings import Config
from vesper.model.decoder import Decoder
from vesper.model.objective import Objective
from vesper.model.objectives import Responses, make_objective, num_outputs
from vesper.party.label_party import LabelParty
from vesper.progress import Progress, silent
from vesper.protocol.messages import DataHello, Farewell, LabelHello, Roster
from vesper.run.agreement import Agreement, agreement_of, refuse_unusable_labels
from vesper.run.ends.checkpoint import Checkpoints
from vesper.run.ends.link import Link
from vesper.run.ends.opening import PROTOCOL_VERSION, refuse_other
from vesper.run.ends.told import UNTOLD, Told
from vesper.run.session import NOWHERE, answer
from vesper.run.setup.contract import canonical

Watch = Callable[[LabelParty, Objective], None]
"""Is given the party once it is there, to show how it does."""


@dataclass(frozen=True)
class LabelOutcome:
    """What the label party has after a session."""

    agreement: Agreement
    label_side: Decoder
    """With the weights of the best stage."""
    metric: str
    stages: list[dict[str, float]]
    """Validation and test metric a stage."""
    bytes_sent: int

    @property
    def best_stage(self) -> int:
        """The stage that is best on validation."""
        return int(np.argmax([stage["validation"] for stage in self.stages]))


def label_end(
    config: Config,
    labels: LabelHoldings,
    link: Link,
    *,
    method: Method | None = None,
    checkpoints: Checkpoints = NOWHERE,
    progress: Progress = silent,
    watch: Watch = lambda party, objective: None,
    told: Told = UNTOLD,
    responses: Responses | None = None,
) -> LabelOutcome:
    """Go through a whole session as the label party; with responses to labels if they are asked."""
    refuse_unusable_labels(config, labels)
    if (responses is None) != (config.privacy.label_epsilon is None):
        raise ValueError("expected responses to labels where label_epsilon is set, and only there")
    objective = objective_of(config, labels, responses)
    contract = canonical(config)
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
    agreed = agreement_of(config, sizes, num_val=counts["val"], num_test=counts["test"])
    label_side = (method or agreed.method).label_side(config, sizes)
    run = config.run
    party = LabelParty(
        objective,
        label_side,
        learning_rate=run.learning_rate,
        weight_decay=run.weight_decay,
        patience=run.patience,
        local_updates=run.local_updates,
    )
    watch(party, objective)
    promise = agreed.method.promise(config, sizes)
    told.agreed(promise, agreed.itinerary.most, metric=objective.metric)
    link.send(roster_of(labels, objective, config))
    stages = answer(
        party,
        link,
        agreed.itinerary,
        checkpoints=checkpoints,
        progress=progress,
        note=lambda: note_of(party, objective),
        told=told,
    )
    link.send(Farewell())
    return LabelOutcome(agreed, label_side, objective.metric, stages, link.bytes_sent)


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
