"""Snapshots in a simulation: the trained model on later graphs, each with its own budget.

    train on window 1   ->   test nodes of window 2, of window 3, ...   with the same model

A later window is a folder like that of training: one folder per data party, and `label/`. Between
parties on a network, `serving` does the same with `--answer --snapshot`.

Nothing is fitted on a snapshot: weights, scales and centres are those of training. What it releases
is charged to an account of its own, under a name that is made up for it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from vesper.deployment.saved_run import with_hops
from vesper.errors import InputError
from vesper.graph.features import feature_columns
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import LabelHoldings, open_labels
from vesper.graph.summary import refuse_unknown_labels
from vesper.mechanism.door import ChargedDoor, Door
from vesper.mechanism.noise import NoiseSource
from vesper.method.settings import Config
from vesper.model.evaluation import Calibration
from vesper.model.objective import Label
from vesper.model.objective_factory import LabelResponses, task_of
from vesper.party.inference import InferenceParty, trained_arrays
from vesper.party.representation import Representation
from vesper.privacy.ledger.run_balance import balance_of_run
from vesper.privacy.ledger.store import Ledger
from vesper.progress import Progress, no_progress
from vesper.protocol.messages import IdTexts, Roster
from vesper.serving.served_graph import refuse_other_columns, without_probe
from vesper.session.doors import open_door
from vesper.session.label_side import label_objective, make_roster
from vesper.session.loop import evaluation_blocks
from vesper.session.metrics import evaluate_predictions, metric_targets
from vesper.session.result import SnapshotCost, SnapshotResult, draws_noise
from vesper.session.run_spec import RunSpec, make_run_spec
from vesper.simulation.in_process import InProcessDataParty, TrainedSession


@dataclass(frozen=True, eq=False)
class SnapshotParty:
    """One data party with its graph of a later window."""

    name: str
    run: str
    """Name of its charges in the ledger."""
    data: DataHoldings
    door: Door
    run_spec: RunSpec
    """Run spec with noise that fits behind the door."""

    def make_answering_party(
        self, trained: Representation, roster: Roster, *, stage: int
    ) -> InferenceParty:
        """Load what was trained, and make the releases that the stage needs.

        Args:
            trained: the data party's side after training.
            roster: of training; label posteriors of nodes that still exist stay in use.
            stage: the stage that validation chose.
        """
        run_spec = self.run_spec
        side = run_spec.method.make_representation(
            run_spec.config,
            run_spec.sizes,
            noise_plan=run_spec.noise_plan,
            features=self.data.features,
            door=self.door,
        )
        return InferenceParty(
            side,
            self.data.ids,
            trained=trained_arrays(trained),
            roster=roster,
            stage=stage,
            is_new=True,
        )

    def cost(self) -> SnapshotCost:
        """State the guarantee for this graph, and what it has spent so far."""
        noise_plan = self.run_spec.noise_plan
        epsilon = spent = noise_plan.certified_epsilon
        releases = 0
        if isinstance(self.door, ChargedDoor):
            balance = balance_of_run(self.door.account.ledger, self.run)
            spent, releases = balance.spent_epsilon, len(balance.charges)
        return SnapshotCost(
            name=self.name,
            run=self.run,
            num_nodes=self.run_spec.sizes.num_nodes,
            plan=noise_plan.plan,
            epsilon=epsilon,
            delta=noise_plan.delta,
            spent_epsilon=spent,
            releases=releases,
            simulated=draws_noise(noise_plan),
        )


@dataclass(frozen=True, eq=False)
class SnapshotOpener:
    """Opens later graphs of one data party.

    Args:
        data_party: the party in training, with the hops that are released.
        config: its settings; each graph has all of their epsilon.
        ledger: to charge.
        folder: of the graph of training.
        subfolder: path of the party's folder within the folder of a window.
        seed: of the noise of training.
        graph_name: name of the graph of training; later ones are numbered.
    """

    data_party: InProcessDataParty
    config: Config
    ledger: Ledger
    folder: Path
    subfolder: Path
    seed: int
    graph_name: str

    def open(
        self,
        folder: Path,
        labels: LabelHoldings,
        *,
        run: str,
        number: int,
        progress: Progress = no_progress,
    ) -> SnapshotParty:
        """Open a folder before training, so that an unusable one is refused early.

        Args:
            folder: holds nodes and edges.
            labels: to measure predictions against.
            run: the name of its charges in the ledger.
            number: of the later graph, from 1; decides on its noise and the name of its account.
            progress: receives progress reports.

        Raises:
            InputError: the folder cannot be used.
            BudgetError: its releases do not fit what is left of its budget.
        """
        refuse_other_columns(feature_columns(self.folder), folder)
        data = open_data(folder, progress=progress)
        refuse_unknown_labels(data.ids, labels)
        trained = self.data_party.run_spec
        noise_plan = trained.noise_plan
        settings = without_probe(with_hops(self.config, hops=noise_plan.hops))
        sizes = replace(trained.sizes, num_nodes=data.graph.num_nodes)
        planned = make_run_spec(settings, sizes, num_val=0, num_test=0)
        noise = NoiseSource.for_simulation(self.seed + number * SNAPSHOT_SEED_OFFSET)
        door, fitting = open_door(
            planned,
            data.graph,
            self.ledger,
            noise,
            name=f"{self.graph_name}.{number}",
            run=run,
        )
        return SnapshotParty(self.data_party.name, run, data, door, fitting)


SNAPSHOT_SEED_OFFSET = 1 << 64
"""Added to the seed for each snapshot, so that no two graphs share the bits of their noise."""


@dataclass(frozen=True, eq=False)
class SimulatedSnapshot:
    """A later window: one graph per data party, and labels to measure against."""

    name: str
    labels: LabelHoldings
    task: str
    parties: tuple[SnapshotParty, ...]

    @torch.no_grad()
    def evaluate(
        self, trained: TrainedSession, roster: Roster, calibration: Calibration
    ) -> SnapshotResult:
        """Predict the test nodes, and make the releases that the chosen stage needs.

        Args:
            trained: all sides after training.
            roster: of training; label posteriors of nodes that still exist stay in use.
            calibration: of training.
        """
        stage, rows = trained.best_stage, self.labels.rows("test")
        inference_parties = [
            party.make_answering_party(side, roster, stage=stage)
            for party, side in zip(self.parties, trained.data_sides, strict=True)
        ]
        trained.label_side.module.eval()
        predicted = []
        for block in evaluation_blocks(rows):
            values = _side_by_side(inference_parties, tuple(map(str, self.labels.ids.take(block))))
            scores = trained.label_side.decode(torch.from_numpy(values), stage)
            predicted.append(calibration.predict(scores.double().numpy()))  # (block, columns)
        test = evaluate_predictions(
            np.concatenate(predicted),
            _truth(self.labels),
            calibration,
            task=self.task,
            path=self.labels.path,
        )
        costs = [party.cost() for party in self.parties]
        cost = replace(max(costs, key=_exposure), name=self.name)
        several = tuple(costs) if len(costs) > 1 else ()
        return SnapshotResult(**asdict(cost), num_test=len(rows), test=test, parties=several)


def open_snapshots(
    folders: Sequence[Path],
    snapshot_openers: Sequence[SnapshotOpener],
    config: Config,
    *,
    run: str,
    classes: Sequence[Label],
    progress: Progress = no_progress,
) -> list[SimulatedSnapshot]:
    """Open later graphs before training, so that unusable ones are refused early.

    Args:
        folders: each like that of training; nodes with split `test` are predicted.
        snapshot_openers: one per data party.
        config: settings of the run.
        run: name of the run in ledgers.
        classes: of training.
        progress: receives progress reports.

    Raises:
        InputError: a folder cannot be used.
        BudgetError: its releases do not fit what is left of its budget.
    """
    opened = []
    for number, folder in enumerate(folders, start=1):
        labels = open_labels(folder / "label", decimals=config.run.task != "classification")
        _refuse_unusable_test_labels(labels, config, classes=classes)
        parties = tuple(
            each.open(
                folder / each.subfolder,
                labels,
                run=f"{run} snapshot {number}",
                number=number,
                progress=progress,
            )
            for each in snapshot_openers
        )
        opened.append(SimulatedSnapshot(folder.name, labels, config.run.task, parties))
    return opened


def evaluate_snapshots(
    graphs: Sequence[SimulatedSnapshot],
    trained: TrainedSession,
    config: Config,
    labels: LabelHoldings,
    responses: LabelResponses | None,
) -> tuple[SnapshotResult, ...]:
    """Predict the test nodes of each graph with the trained model, in the order of the graphs.

    Args:
        graphs: as opened before training.
        trained: all sides after training.
        config: settings of the run.
        labels: of training.
        responses: to these labels, if they are protected.
    """
    objective = label_objective(config, labels, responses)
    roster = make_roster(labels, objective, config)
    calibration = objective.calibration(labels.classes)
    return tuple(graph.evaluate(trained, roster, calibration) for graph in graphs)


def _side_by_side(parties: Sequence[InferenceParty], ids: IdTexts) -> NDArray[np.float32]:
    """Embeddings as the decoder takes them: (ids, width, depth) of one party.

    Those of several parties are flattened and joined: (ids, sum of width x depth, 1).
    """
    parts = [party.embed(ids)[1] for party in parties]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([part.reshape(len(ids), -1) for part in parts], axis=1)[:, :, None]


def _exposure(cost: SnapshotCost) -> float:
    """Epsilon of a party; infinite where nothing is certified."""
    return float("inf") if cost.epsilon is None else cost.epsilon


def _refuse_unusable_test_labels(
    labels: LabelHoldings, config: Config, *, classes: Sequence[Label]
) -> None:
    if not len(labels.rows("test")):
        raise InputError(
            f"{labels.path}, column split: expected some rows with 'test', found none; a snapshot "
            f"is measured on these nodes"
        )
    are_classes = task_of(config.run.task, classes) == "classification"
    metric_targets(_truth(labels), classes if are_classes else (), path=labels.path)


def _truth(labels: LabelHoldings) -> list[Label]:
    return [labels.classes[code] for code in labels.labels[labels.rows("test")]]
