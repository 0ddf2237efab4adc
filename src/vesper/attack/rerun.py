"""A run once more, with the same seed, to see what the label party saw.

Noise and weights of a simulated run come from its seed, so it repeats bit for bit; that it did is
checked against what the run folder says.
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
    """Both parties after the run, and everything that was shown."""

    run_spec: RunSpec
    data: DataHoldings
    labels: LabelHoldings
    trained: TrainedSession
    door: RecordingDoor
    recorder: RowRecordingRepresentation

    @property
    def noise_plan(self) -> NoisePlan:
        """What the run promised."""
        return self.run_spec.noise_plan


def read_config(run: Path) -> Config:
    """Read the settings of a run folder.

    Raises:
        InputError: it is no run folder.
    """
    path = run / "config.json"
    if any(run.glob("data_party-*.npz")):
        raise InputError(
            f"{run}: expected a run with one data party, found several; an attack repeats the run "
            f"of one pair, so train with that one alone first"
        )
    try:
        return Config.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        raise InputError(
            f"{path}: expected the settings of a run; give the folder that 'vesper simulate --out' "
            f"made"
        ) from None


def open_parties(folder: Path, config: Config) -> tuple[DataHoldings, LabelHoldings]:
    """Open the folders of both parties, as the run did."""
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
    """Run the settings on what the parties hold; `row_observer` is told of perturbed rows."""
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
    """Train as the run did, with a method that is watched."""
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
    """Open the door that a simulated run has, charged to a ledger that goes away."""
    noise = NoiseSource.for_simulation(run_spec.config.run.seed)
    with tempfile.TemporaryDirectory(prefix="vesper-attack-") as folder:
        with closing(Ledger(Path(folder) / "ledger.sqlite", clock=time.time)) as book:
            yield open_door(run_spec, data.graph, book, noise, run="attack")


def refuse_other_run(run: Path, folder: Path, trained: TrainedSession) -> None:
    """Refuse what was repeated if it is not the run of this folder."""
    path = run / "result.json"
    try:
        expected = json.loads(path.read_text(encoding="utf-8"))["validation"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path}: expected the result of a run beside its settings") from None
    found = trained.stages[trained.best_stage]["validation"]
    if not isinstance(expected, float) or abs(found - expected) > TOLERANCE * max(1.0, abs(found)):
        raise InputError(
            f"{folder}: repeated, the run reaches {found:.6g} on validation where {path} says "
            f"{expected}; give the folder it was trained on, and the version it was trained with"
        )
