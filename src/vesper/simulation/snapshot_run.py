"""The model of a simulation on graphs that came after training, each with a budget of its own.

    train on window 1   ->   test nodes of window 2, of window 3, ...   with the same model

A later window is a folder like that of training: a folder a data party, and `label/`. Between
parties on a network `run.serving` does the same with `--answer --snapshot`.

One data party's graph that came after training: behind a door, with a budget of its own.

Nothing is fitted on it: weights, scales and centres are those of training. What it releases is
charged to an account of its own, under its own fingerprint.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from vesper.deployment.saved_run import feature_columns, with_hops
from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import LabelHoldings, open_labels
from vesper.graph.summary import refuse_unknown_labels
from vesper.mechanism.door import ChargedDoor, Door
from vesper.mechanism.fingerprint import fingerprint
from vesper.mechanism.noise import NoiseSource
from vesper.method.settings import Config
from vesper.model.evaluation import Calibration
from vesper.model.objective import Label
from vesper.model.objective_factory import LabelResponses, task_of
from vesper.party.inference import InferenceParty, trained_arrays
from vesper.party.representation import Representation
from vesper.privacy.ledger.store import Ledger, key_of
from vesper.progress import Progress, no_progress
from vesper.protocol.messages import IdTexts, Roster
from vesper.serving.served_graph import refuse_other_columns, without_probe
from vesper.session.doors import open_door
from vesper.session.label_side import label_objective, make_roster
from vesper.session.loop import evaluation_blocks
from vesper.session.metrics import evaluate_predictions, metric_targets
from vesper.session.result import SnapshotCost, SnapshotResult, simulated_run_name
from vesper.session.run_spec import RunSpec, make_run_spec
from vesper.simulation.in_process import InProcessDataParty, TrainedSession


@dataclass(frozen=True, eq=False)
class SnapshotParty:
    """A data party's graph that came later."""

    name: str
    run: str
    """What the ledger calls its charges."""
    data: DataHoldings
    door: Door
    run_spec: RunSpec
    """With noise that fits behind the door."""

    def make_answering_party(
        self, trained: Representation, roster: Roster, *, stage: int
    ) -> InferenceParty:
        """Take over what was trained; makes the releases that the stage needs.

        Args:
            trained: the data party's side after training.
            roster: of training; training nodes that are still there keep their voices.
            stage: which validation chose.
        """
        agreed = self.run_spec
        side = agreed.method.make_representation(
            agreed.config,
            agreed.sizes,
            noise_plan=agreed.noise_plan,
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
        """What this graph was promised and has spent so far."""
        agreed = self.run_spec
        noise_plan = agreed.noise_plan
        epsilon = spent = noise_plan.certified_epsilon
        releases = 0
        if isinstance(self.door, ChargedDoor):
            account = self.door.account
            assert account.budget is not None
            epsilon, spent = account.budget.epsilon, account.spent_epsilon()
            releases = account.charges_of(self.run)
        return SnapshotCost(
            name=self.name,
            run=self.run,
            num_nodes=agreed.sizes.num_nodes,
            plan=noise_plan.plan,
            epsilon=epsilon,
            delta=noise_plan.delta,
            spent_epsilon=spent,
            releases=releases,
        )


@dataclass(frozen=True, eq=False)
class SnapshotOpener:
    """Opens later graphs of one data party; none that is released may be that of another window.

    Args:
        data_party: the party in training, with the hops that are released.
        config: its settings; each graph has the whole of their epsilon.
        ledger: is charged.
        folder: of the graph of training.
        subfolder: of a party's folder in the folder of a window.
        seed: of the noise of training.
    """

    data_party: InProcessDataParty
    config: Config
    ledger: Ledger
    folder: Path
    subfolder: Path
    seed: int
    _known: dict[str, Path] = field(default_factory=dict, init=False)
    """Fingerprints met so far, and whose they are."""

    def open(
        self,
        folder: Path,
        labels: LabelHoldings,
        *,
        run: str,
        stream: int,
        progress: Progress = no_progress,
    ) -> SnapshotParty:
        """Open a folder before training, so that what cannot be used is refused before.

        Args:
            folder: holds nodes and edges.
            labels: by which predictions will be judged.
            run: what the ledger calls its charges.
            stream: added to the seed for its noise.
            progress: is told how far it is.

        Raises:
            InputError: it cannot be used, or its edges are those of another one.
            BudgetError: its releases do not fit what is left of its budget.
        """
        refuse_other_columns(feature_columns(self.folder), folder)
        later = open_data(folder, progress=progress)
        refuse_unknown_labels(later.ids, labels)
        agreed = self.data_party.run_spec
        noise_plan = agreed.noise_plan
        settings = without_probe(with_hops(self.config, hops=noise_plan.hops))
        sizes = replace(agreed.sizes, num_nodes=later.graph.num_nodes)
        if noise_plan.plan == "certified":
            self._refuse_known(folder, later.graph)
        planned = make_run_spec(settings, sizes, num_val=0, num_test=0)
        noise = NoiseSource.for_simulation(self.seed + stream)
        door, fitting = open_door(planned, later.graph, self.ledger, noise, run=run)
        return SnapshotParty(self.data_party.name, run, later, door, fitting)

    def _refuse_known(self, folder: Path, graph: Graph) -> None:
        key = key_of(self.ledger)
        self._known.setdefault(fingerprint(self.data_party.data.graph, key=key), self.folder)
        name = fingerprint(graph, key=key)
        if name in self._known:
            raise InputError(
                f"{folder}: its edges are exactly those of {self._known[name]}, and a graph is not "
                f"released twice; take a window in which the graph of every data party is new"
            )
        self._known[name] = folder


SNAPSHOT_SEED_OFFSET = 1 << 64
"""Added to the seed for each later graph: no two graphs share the bits of their noise."""


@dataclass(frozen=True, eq=False)
class SimulatedSnapshot:
    """A window that came later: a graph a data party, and labels to judge by."""

    name: str
    labels: LabelHoldings
    task: str
    parties: tuple[SnapshotParty, ...]

    @torch.no_grad()
    def evaluate(
        self, trained: TrainedSession, roster: Roster, calibration: Calibration
    ) -> SnapshotResult:
        """Predict the test nodes; makes the releases that the chosen stage needs.

        Args:
            trained: all sides after training.
            roster: of training; training nodes that are still there keep their voices.
            calibration: of training.
        """
        stage, rows = trained.best_stage, self.labels.rows("test")
        answering = [
            party.make_answering_party(side, roster, stage=stage)
            for party, side in zip(self.parties, trained.data_sides, strict=True)
        ]
        trained.label_side.module.eval()
        predicted = []
        for some in evaluation_blocks(rows):
            values = _side_by_side(answering, tuple(map(str, self.labels.ids.take(some))))
            scores = trained.label_side.decode(torch.from_numpy(values), stage)
            predicted.append(calibration.predict(scores.double().numpy()))  # (some, columns)
        test = evaluate_predictions(
            np.concatenate(predicted),
            _truth(self.labels),
            calibration,
            task=self.task,
            path=self.labels.path,
        )
        costs = [party.cost() for party in self.parties]
        said = replace(max(costs, key=_exposure), name=self.name)
        several = tuple(costs) if len(costs) > 1 else ()
        return SnapshotResult(**asdict(said), num_test=len(rows), test=test, parties=several)


def open_snapshots(
    folders: Sequence[Path],
    snapshot_openers: Sequence[SnapshotOpener],
    config: Config,
    *,
    classes: Sequence[Label],
    progress: Progress = no_progress,
) -> list[SimulatedSnapshot]:
    """Open later graphs before training, so that what cannot be used is refused before.

    Args:
        folders: each like that of training; nodes with split `test` are predicted.
        snapshot_openers: of each data party.
        config: settings of the run.
        classes: of training.
        progress: is told how far it is.

    Raises:
        InputError: a folder cannot be used, or its edges are those of another one.
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
                run=f"{simulated_run_name(config)} snapshot {number}",
                stream=number * SNAPSHOT_SEED_OFFSET,
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
    """Predict test nodes of each graph with the trained model, in their order.

    Args:
        graphs: as they were opened before training.
        trained: all sides after it.
        config: settings of the run.
        labels: of training.
        responses: to them, where they are protected.
    """
    objective = label_objective(config, labels, responses)
    roster = make_roster(labels, objective, config)
    calibration = objective.calibration(labels.classes)
    return tuple(graph.evaluate(trained, roster, calibration) for graph in graphs)


def _side_by_side(parties: Sequence[InferenceParty], ids: IdTexts) -> NDArray[np.float32]:
    """Embeddings as they are decoded: (ids, width, depth) of one party, or those of all, flat."""
    parts = [party.embed(ids)[1] for party in parties]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([part.reshape(len(ids), -1) for part in parts], axis=1)[:, :, None]


def _exposure(cost: SnapshotCost) -> float:
    """Largest for whom nothing is certified."""
    return float("inf") if cost.epsilon is None else cost.epsilon


def _refuse_unusable_test_labels(
    labels: LabelHoldings, config: Config, *, classes: Sequence[Label]
) -> None:
    if not len(labels.rows("test")):
        raise InputError(
            f"{labels.path}, column split: expected some rows with 'test', found none; they are "
            f"the nodes that are predicted"
        )
    are_classes = task_of(config.run.task, classes) == "classification"
    metric_targets(_truth(labels), classes if are_classes else (), path=labels.path)


def _truth(labels: LabelHoldings) -> list[Label]:
    return [labels.classes[code] for code in labels.labels[labels.rows("test")]]
