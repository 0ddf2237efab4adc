"""Two parties in one process, trained through session, protocol and a memory channel.

What both know before anything is sent is the `Agreement`; what comes out is `Trained`: both sides
with the weights that validation chose, and how good each stage was.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError, PeerError, RemoteProtocolError
from vesper.graph.holdings import DataHoldings
from vesper.graph.labels import SPLITS, LabelHoldings
from vesper.mechanism.door import Door
from vesper.method.method import Method, Sizes
from vesper.method.registry import find_method
from vesper.method.settings import Config, batch_size_of
from vesper.model.decoder import Decoder
from vesper.model.objective import Objective
from vesper.model.objectives import make_objective, num_outputs, task_of
from vesper.party.data_party import DataParty
from vesper.party.label_party import LabelParty
from vesper.party.representation import Representation
from vesper.progress import Progress, silent
from vesper.protocol.messages import Hello, Roster
from vesper.protocol.turns import Role
from vesper.run.link import Link
from vesper.run.session import Itinerary, answer, drive
from vesper.transport.memory import memory_pair

PROTOCOL_VERSION = 1


@dataclass(frozen=True)
class Agreement:
    """What follows from the config and public sizes, the same at both parties."""

    config: Config
    method: Method
    sizes: Sizes
    itinerary: Itinerary


@dataclass(frozen=True)
class Trained:
    """Both sides after training, and what was measured on the way."""

    data_side: Representation
    label_side: Decoder
    """With the weights of the best stage."""
    metric: str
    stages: list[dict[str, float]]
    """Validation and test metric a stage."""
    bytes_to_label_party: int
    bytes_to_data_party: int

    @property
    def best_stage(self) -> int:
        """The stage that is best on validation."""
        return int(np.argmax([stage["validation"] for stage in self.stages]))


def agree(config: Config, data: DataHoldings, labels: LabelHoldings) -> Agreement:
    """Find method, sizes and itinerary."""
    counts = {split: len(labels.rows(split)) for split in SPLITS}
    for split, count in counts.items():
        if count == 0 and split != "test":
            raise InputError(
                f"{labels.path}, column split: expected some rows with '{split}', found none; "
                f"a fifth of the training rows will do for 'val'"
            )
    refuse_equal_labels(config, labels, "val")
    if data.features.shape[1] == 0:
        raise InputError(
            "data/nodes: expected at least one feature column beside 'id', found none; a column "
            "that is 1 everywhere will do"
        )
    sizes = Sizes(
        num_nodes=data.graph.num_nodes,
        num_train=counts["train"],
        num_features=data.features.shape[1],
        num_classes=num_outputs(config.run.task, labels.classes),
    )
    method = find_method(config.run.method)
    itinerary = Itinerary(
        stages=method.stages(config, sizes),
        num_train=counts["train"],
        num_val=counts["val"],
        num_test=counts["test"],
        batch_size=batch_size_of(config.run, num_train=sizes.num_train),
        epochs=config.run.epochs,
        seed=config.run.seed,
    )
    return Agreement(config, method, sizes, itinerary)


def refuse_equal_labels(config: Config, labels: LabelHoldings, split: str) -> None:
    """Refuse a split on which two classes, or numbers, cannot be told apart by any model.

    Raises:
        InputError: all labels of the split are equal, and the metric would not be a number.
    """
    has_accuracy = num_outputs(config.run.task, labels.classes) != 2 and (
        task_of(config.run.task, labels.classes) == "classification"
    )
    if len(labels.classes) < 2 or (
        not has_accuracy and len(np.unique(labels.labels[labels.rows(split)])) < 2
    ):
        raise InputError(
            f"{labels.path}, column label: expected at least two different labels among rows with "
            f"split '{split}', found one; no metric can be computed on them"
        )


def train(
    agreement: Agreement,
    data: DataHoldings,
    labels: LabelHoldings,
    door: Door,
    *,
    progress: Progress = silent,
) -> Trained:
    """Meet, then drive and answer in two threads."""
    config, sizes, itinerary = agreement.config, agreement.sizes, agreement.itinerary
    order = np.concatenate([labels.rows(split) for split in SPLITS])
    objective = make_objective(
        config.run.task,
        labels.classes,
        labels.labels[order],
        num_train=sizes.num_train,
        balanced=config.run.class_weights == "balanced",
    )
    data_side = agreement.method.data_side(config, sizes, features=data.features, door=door)
    label_side = agreement.method.label_side(config, sizes)
    rates = {"learning_rate": config.run.learning_rate, "weight_decay": config.run.weight_decay}
    data_party = DataParty(data_side, **rates)
    label_party = LabelParty(objective, label_side, patience=config.run.patience, **rates)
    data_end, label_end = memory_pair()
    data_link, label_link = Link(Role.DATA, data_end), Link(Role.LABEL, label_end)
    hello = Hello(version=PROTOCOL_VERSION, contract=config.contract)

    def label_thread() -> list[NDArray[np.float64]]:
        try:
            label_link.expect(Hello)
            label_link.send(hello)
            label_link.send(_roster(labels, objective, itinerary, config))
            return answer(label_party, label_link, itinerary)
        finally:
            label_end.close()

    def note() -> str:
        best = label_party.best  # not finite until validation has spoken
        metric = f"{objective.metric} {best:.2f}" if math.isfinite(best) else ""
        parts = [f"loss {label_party.last_loss:.3f}", metric, door.spent()]
        return "  ".join(part for part in parts if part)

    with ThreadPoolExecutor(max_workers=1) as pool:
        answering = pool.submit(label_thread)
        try:
            data_link.send(hello)
            data_link.expect(Hello)
            roster = data_link.expect(Roster)
            nodes = data.ids.find_texts(roster.train + roster.val + roster.test)
            if (nodes < 0).any():
                unknown = int((nodes < 0).sum())
                raise RemoteProtocolError(f"the peer's roster has {unknown} ids that are no node")
            data_party.meet(nodes, roster.voices)
            drive(data_party, data_link, itinerary, progress=progress, note=note)
        except PeerError:
            data_end.close()
            answering.result()  # the cause, when the label side failed first
            raise
        finally:
            data_end.close()
        scores = answering.result()
    return Trained(
        data_side=data_side,
        label_side=label_side,
        metric=objective.metric,
        stages=[_measure(objective, itinerary, held_out) for held_out in scores],
        bytes_to_label_party=data_link.bytes_sent,
        bytes_to_data_party=label_link.bytes_sent,
    )


def _roster(
    labels: LabelHoldings, objective: Objective, itinerary: Itinerary, config: Config
) -> Roster:
    train, val, test = (tuple(map(str, labels.ids.take(labels.rows(split)))) for split in SPLITS)
    speaking = np.arange(itinerary.num_train if config.run.label_messages else 0)
    return Roster(train=train, val=val, test=test, voices=objective.voices(speaking))


def _measure(
    objective: Objective, itinerary: Itinerary, scores: NDArray[np.float64]
) -> dict[str, float]:
    """Metrics of one stage; `scores` are those of the held-out rows."""
    rows = {"validation": itinerary.validation(), "test": itinerary.test()}
    return {
        split: objective.evaluate(scores[which - itinerary.num_train], which)
        for split, which in rows.items()
        if len(which)
    }
