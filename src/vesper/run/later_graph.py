"""The model of a simulation on graphs that came after training, each with a budget of its own.

    train on window 1   ->   test nodes of window 2, of window 3, ...   with the same model

A later graph is a folder with `data/` and `label/`. Nothing is fitted on it: weights, scales and
centres are those of training. What it releases is charged to an account of its own, under its own
fingerprint. Between two parties `run.serving` does the same with `--answer --snapshot`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from vesper.errors import InputError
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import LabelHoldings, open_labels
from vesper.graph.summary import refuse_unknown_labels
from vesper.mechanism.door import ChargedDoor, Door
from vesper.mechanism.fingerprint import fingerprint
from vesper.mechanism.noise import NoiseSource
from vesper.method.settings import Config
from vesper.model.calibration import Calibration
from vesper.model.objective import Label
from vesper.model.objectives import Responses, task_of
from vesper.party.answering_party import AnsweringParty, arrays_of_trained
from vesper.privacy.key import key_of
from vesper.privacy.ledger import Ledger
from vesper.progress import Progress, silent
from vesper.protocol.messages import Roster
from vesper.run.agreement import Agreement, agreement_of
from vesper.run.doors import open_door
from vesper.run.ends.label_end import objective_of, roster_of
from vesper.run.itinerary import blocks
from vesper.run.measured import measure, targets_of
from vesper.run.pair import Trained
from vesper.run.result import SnapshotResult, simulated_name
from vesper.run.serving.kept_run import feature_columns, with_hops
from vesper.run.serving.subject import refuse_other_columns, without_poll

STREAM = 1 << 64
"""Added to the seed for each later graph: no two graphs share the bits of their noise."""


@dataclass(frozen=True, eq=False)
class LaterGraph:
    """One graph that came later, behind a door of its own."""

    name: str
    run: str
    """What the ledger calls its charges."""
    data: DataHoldings
    labels: LabelHoldings
    door: Door
    agreement: Agreement
    """With noise that fits behind the door."""

    @torch.no_grad()
    def judge(self, trained: Trained, roster: Roster, calibration: Calibration) -> SnapshotResult:
        """Predict the test nodes; makes the releases that the chosen stage needs.

        Args:
            trained: both sides after training.
            roster: of training; training nodes that are still there keep their voices.
            calibration: of training.
        """
        agreed, stage, rows = self.agreement, trained.best_stage, self.labels.rows("test")
        side = agreed.method.data_side(
            agreed.config, agreed.sizes, features=self.data.features, door=self.door
        )
        party = AnsweringParty(
            side,
            self.data.ids,
            trained=arrays_of_trained(trained.data_side),
            roster=roster,
            stage=stage,
            is_new=True,
        )
        trained.label_side.module.eval()
        predicted = []
        for some in blocks(rows):
            _, values = party.embed(tuple(map(str, self.labels.ids.take(some))))
            scores = trained.label_side.decode(torch.from_numpy(values), stage)
            predicted.append(calibration.predict(scores.double().numpy()))  # (some, columns)
        test = measure(
            np.concatenate(predicted),
            _truth(self.labels),
            calibration,
            task=agreed.config.run.task,
            path=self.labels.path,
        )
        return self._result(test, num_test=len(rows))

    def _result(self, test: float, *, num_test: int) -> SnapshotResult:
        agreed = self.agreement
        promise = agreed.method.promise(agreed.config, agreed.sizes)
        epsilon = spent = promise.certified_epsilon
        releases = 0
        if isinstance(self.door, ChargedDoor):
            account = self.door.account
            assert account.budget is not None
            epsilon, spent = account.budget.epsilon, account.spent_epsilon()
            releases = account.charges_of(self.run)
        return SnapshotResult(
            name=self.name,
            run=self.run,
            num_nodes=agreed.sizes.num_nodes,
            num_test=num_test,
            test=test,
            plan=promise.plan,
            epsilon=epsilon,
            delta=promise.delta,
            spent_epsilon=spent,
            releases=releases,
        )


def open_later_graphs(
    folders: Sequence[Path],
    agreement: Agreement,
    config: Config,
    *,
    first: Path,
    data: DataHoldings,
    labels: LabelHoldings,
    ledger: Ledger,
    progress: Progress = silent,
) -> list[LaterGraph]:
    """Open later graphs before training, so that what cannot be used is refused before.

    Args:
        folders: each holds `data/` and `label/`; nodes with split `test` are predicted.
        agreement: of training, with the hops that are released.
        config: settings of the run; each graph has the whole of their epsilon.
        first: folder of training.
        data: the graph of training.
        labels: of training.
        ledger: is charged.
        progress: is told how far it is.

    Raises:
        InputError: a folder cannot be used, or its edges are those of another one.
        BudgetError: its releases do not fit what is left of its budget.
    """
    if not folders:
        return []
    key, columns = key_of(ledger), feature_columns(first / "data")
    known = {fingerprint(data.graph, key=key): first}
    promise = agreement.method.promise(agreement.config, agreement.sizes)
    settings = without_poll(with_hops(config, hops=len(promise.noise_stds) or config.privacy.hops))
    opened = []
    for number, folder in enumerate(folders, start=1):
        refuse_other_columns(columns, folder / "data")
        later = open_data(folder / "data", progress=progress)
        judged = _labels(folder, later, config, classes=labels.classes)
        name = fingerprint(later.graph, key=key)
        if name in known:
            raise InputError(
                f"{folder}: its edges are exactly those of {known[name]}, and a graph is not "
                f"released twice; leave it out"
            )
        known[name] = folder
        sizes = replace(agreement.sizes, num_nodes=later.graph.num_nodes)
        agreed = agreement_of(settings, sizes, num_val=0, num_test=0)
        run = f"{simulated_name(config)} snapshot {number}"
        noise = NoiseSource.for_simulation(config.run.seed + number * STREAM)
        door, agreed = open_door(agreed, later.graph, ledger, noise, run=run)
        opened.append(LaterGraph(folder.name, run, later, judged, door, agreed))
    return opened


def judge_later_graphs(
    graphs: Sequence[LaterGraph],
    trained: Trained,
    config: Config,
    labels: LabelHoldings,
    responses: Responses | None,
) -> tuple[SnapshotResult, ...]:
    """Predict test nodes of each graph with the trained model, in their order.

    Args:
        graphs: as they were opened before training.
        trained: both sides after it.
        config: settings of the run.
        labels: of training.
        responses: to them, where they are protected.
    """
    objective = objective_of(config, labels, responses)
    roster = roster_of(labels, objective, config)
    calibration = objective.calibration(labels.classes)
    return tuple(graph.judge(trained, roster, calibration) for graph in graphs)


def _labels(
    folder: Path, data: DataHoldings, config: Config, *, classes: Sequence[Label]
) -> LabelHoldings:
    labels = open_labels(folder / "label", decimals=config.run.task != "classification")
    refuse_unknown_labels(data.ids, labels)
    if not len(labels.rows("test")):
        raise InputError(
            f"{labels.path}, column split: expected some rows with 'test', found none; they are "
            f"the nodes that are predicted"
        )
    are_classes = task_of(config.run.task, classes) == "classification"
    targets_of(_truth(labels), classes if are_classes else (), path=labels.path)
    return labels


def _truth(labels: LabelHoldings) -> list[Label]:
    return [labels.classes[code] for code in labels.labels[labels.rows("test")]]
