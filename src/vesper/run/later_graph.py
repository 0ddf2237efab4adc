"""The model of a simulation on graphs that came after training, each with a budget of its own.

    train on window 1   ->   test nodes of window 2, of window 3, ...   with the same model

A later window is a folder like that of training: a folder a data party, and `label/`. Between
parties on a network `run.serving` does the same with `--answer --snapshot`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.labels import LabelHoldings, open_labels
from vesper.method.settings import Config
from vesper.model.calibration import Calibration
from vesper.model.objective import Label
from vesper.model.objectives import Responses, task_of
from vesper.party.answering_party import AnsweringParty
from vesper.progress import Progress, silent
from vesper.protocol.messages import IdTexts, Roster
from vesper.run.ends.label_end import objective_of, roster_of
from vesper.run.itinerary import blocks
from vesper.run.later_party import LaterParty, Successors
from vesper.run.measured import measure, targets_of
from vesper.run.pair import Trained
from vesper.run.result import SnapshotCost, SnapshotResult, simulated_name

STREAM = 1 << 64
"""Added to the seed for each later graph: no two graphs share the bits of their noise."""


@dataclass(frozen=True, eq=False)
class LaterGraph:
    """A window that came later: a graph a data party, and labels to judge by."""

    name: str
    labels: LabelHoldings
    task: str
    parties: tuple[LaterParty, ...]

    @torch.no_grad()
    def judge(self, trained: Trained, roster: Roster, calibration: Calibration) -> SnapshotResult:
        """Predict the test nodes; makes the releases that the chosen stage needs.

        Args:
            trained: all sides after training.
            roster: of training; training nodes that are still there keep their voices.
            calibration: of training.
        """
        stage, rows = trained.best_stage, self.labels.rows("test")
        answering = [
            party.answering(side, roster, stage=stage)
            for party, side in zip(self.parties, trained.data_sides, strict=True)
        ]
        trained.label_side.module.eval()
        predicted = []
        for some in blocks(rows):
            values = _side_by_side(answering, tuple(map(str, self.labels.ids.take(some))))
            scores = trained.label_side.decode(torch.from_numpy(values), stage)
            predicted.append(calibration.predict(scores.double().numpy()))  # (some, columns)
        test = measure(
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


def open_later_graphs(
    folders: Sequence[Path],
    successors: Sequence[Successors],
    config: Config,
    *,
    classes: Sequence[Label],
    progress: Progress = silent,
) -> list[LaterGraph]:
    """Open later graphs before training, so that what cannot be used is refused before.

    Args:
        folders: each like that of training; nodes with split `test` are predicted.
        successors: of each data party.
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
        _refuse_unjudgeable(labels, config, classes=classes)
        parties = tuple(
            each.open(
                folder / each.place,
                labels,
                run=f"{simulated_name(config)} snapshot {number}",
                stream=number * STREAM,
                progress=progress,
            )
            for each in successors
        )
        opened.append(LaterGraph(folder.name, labels, config.run.task, parties))
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
        trained: all sides after it.
        config: settings of the run.
        labels: of training.
        responses: to them, where they are protected.
    """
    objective = objective_of(config, labels, responses)
    roster = roster_of(labels, objective, config)
    calibration = objective.calibration(labels.classes)
    return tuple(graph.judge(trained, roster, calibration) for graph in graphs)


def _side_by_side(parties: Sequence[AnsweringParty], ids: IdTexts) -> NDArray[np.float32]:
    """Embeddings as they are decoded: (ids, width, depth) of one party, or those of all, flat."""
    parts = [party.embed(ids)[1] for party in parties]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([part.reshape(len(ids), -1) for part in parts], axis=1)[:, :, None]


def _exposure(cost: SnapshotCost) -> float:
    """Largest for whom nothing is certified."""
    return float("inf") if cost.epsilon is None else cost.epsilon


def _refuse_unjudgeable(labels: LabelHoldings, config: Config, *, classes: Sequence[Label]) -> None:
    if not len(labels.rows("test")):
        raise InputError(
            f"{labels.path}, column split: expected some rows with 'test', found none; they are "
            f"the nodes that are predicted"
        )
    are_classes = task_of(config.run.task, classes) == "classification"
    targets_of(_truth(labels), classes if are_classes else (), path=labels.path)


def _truth(labels: LabelHoldings) -> list[Label]:
    return [labels.classes[code] for code in labels.labels[labels.rows("test")]]
