"""Repetition of a simulated run with the same seed, to see what the label party saw.

Noise and weights of a simulated run come from its seed, so it repeats bit for bit; the result is
checked against the run folder.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from vesper.errors import InputError
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import LabelHoldings, open_labels
from vesper.graph.summary import refuse_unknown_labels
from vesper.mechanism.door import Door
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.recording_door import RecordingDoor
from vesper.method.base import Method, NoisePlan
from vesper.method.settings import Config
from vesper.privacy.ledger.graph_name import SIMULATED_GRAPH
from vesper.privacy.ledger.store import Ledger
from vesper.progress import Progress, no_progress
from vesper.session.doors import open_door
from vesper.session.label_responses import simulate_label_responses
from vesper.session.observer import ProgressObserver
from vesper.session.run_spec import RunSpec, run_spec_for
from vesper.simulation.in_process import TrainedSession, train
from vesper.simulation.recording import (
    RecordingMethod,
    RowObserver,
    RowRecordingMethod,
    RowRecordingRepresentation,
)

M = TypeVar("M", bound=RecordingMethod)

TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Rerun:
    """Both parties after a repeated run, and everything that the label party saw."""

    run_spec: RunSpec
    data: DataHoldings
    labels: LabelHoldings
    trained: TrainedSession
    door: RecordingDoor
    recorder: RowRecordingRepresentation

    @property
    def noise_plan(self) -> NoisePlan:
        """Noise plan of the run."""
        return self.run_spec.noise_plan


def read_config(run: Path) -> Config:
    """Read the settings of a run folder.

    Raises:
        InputError: `run` is no run folder, or a run with several data parties.
    """
    path = run / "config.json"
    if any(run.glob("data_party-*.npz")):
        raise InputError(
            f"{run}: expected a run with one data party, found several; an attack needs a run with "
            f"one, so train with that party alone first"
        )
    try:
        return Config.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        raise InputError(
            f"{path}: expected the settings of a run; pass the folder that 'vesper simulate --out' "
            f"wrote"
        ) from None


def open_parties(folder: Path, config: Config) -> tuple[DataHoldings, LabelHoldings]:
    """Open the folders of both parties as the run did."""
    data = open_data(folder / "data")
    labels = open_labels(folder / "label", decimals=config.run.task != "classification")
    refuse_unknown_labels(data.ids, labels)
    return data, labels


def rerun(
    config: Config,
    data: DataHoldings,
    labels: LabelHoldings,
    *,
    row_observer: RowObserver | None = None,
    progress: Progress = no_progress,
) -> Rerun:
    """Run the settings on the parties' inputs; `row_observer` is called with perturbed rows."""
    run_spec, door, method, trained = retrain(
        config,
        data,
        labels,
        wrap_method=lambda method: RowRecordingMethod(method, row_observer=row_observer),
        progress=progress,
    )
    return Rerun(run_spec, data, labels, trained, door, method.recorder)


def retrain(
    config: Config,
    data: DataHoldings,
    labels: LabelHoldings,
    *,
    wrap_method: Callable[[Method], M],
    progress: Progress = no_progress,
) -> tuple[RunSpec, RecordingDoor, M, TrainedSession]:
    """Train as the run did, with a wrapped method that records."""
    run_spec = run_spec_for(config, data, labels)
    with simulated_door(run_spec, data) as (inner, run_spec):
        door, method = RecordingDoor(inner), wrap_method(run_spec.method)
        trained = train(
            replace(run_spec, method=method),
            data,
            labels,
            door,
            observer=ProgressObserver(progress),
            responses=simulate_label_responses(config, labels),
        )
    return run_spec, door, method, trained


@contextmanager
def simulated_door(run_spec: RunSpec, data: DataHoldings) -> Iterator[tuple[Door, RunSpec]]:
    """Open the door of a simulated run, with a temporary ledger."""
    noise = NoiseSource.for_simulation(run_spec.config.run.seed)
    with (
        tempfile.TemporaryDirectory(prefix="vesper-attack-") as folder,
        closing(Ledger(Path(folder) / "ledger.sqlite", clock=time.time)) as ledger,
    ):
        yield open_door(run_spec, data.graph, ledger, noise, name=SIMULATED_GRAPH, run="attack")


def refuse_other_run(run: Path, folder: Path, trained: TrainedSession) -> None:
    """Refuse a repeated run whose validation result differs from that of the run folder."""
    path = run / "result.json"
    try:
        expected = json.loads(path.read_text(encoding="utf-8"))["validation"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path}: expected the result of a run next to its settings") from None
    validation = trained.stages[trained.best_stage]["validation"]
    allowed = TOLERANCE * max(1.0, abs(validation))
    if not isinstance(expected, float) or abs(validation - expected) > allowed:
        raise InputError(
            f"{folder}: expected {expected} on validation, as in {path}, but the repeated run got "
            f"{validation:.6g}; use the folder and the version that the run was trained with"
        )
