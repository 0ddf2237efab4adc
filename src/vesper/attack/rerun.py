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
from vesper.mechanism.recording_door import WatchedDoor
from vesper.method.base import Method, Promise
from vesper.method.settings import Config
from vesper.privacy.ledger.store import Ledger
from vesper.progress import Progress, silent
from vesper.session.doors import open_door
from vesper.session.label_responses import simulated_responses
from vesper.session.run_spec import Agreement, agree
from vesper.simulation.in_process import Trained, train
from vesper.simulation.recording import ShownMethod, ShownRepresentation, Watch, WatchedMethod

M = TypeVar("M", bound=WatchedMethod)

CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Rerun:
    """Both parties after the run, and everything that was shown."""

    agreement: Agreement
    data: DataHoldings
    labels: LabelHoldings
    trained: Trained
    door: WatchedDoor
    shown: ShownRepresentation

    @property
    def promise(self) -> Promise:
        """What the run promised."""
        return self.agreement.noise_plan


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


def repeat(
    config: Config,
    data: DataHoldings,
    labels: LabelHoldings,
    *,
    watch: Watch | None = None,
    progress: Progress = silent,
) -> Rerun:
    """Run the settings on what the parties hold; `watch` is told of perturbed rows."""
    agreement, door, method, trained = train_again(
        config,
        data,
        labels,
        watched=lambda method: ShownMethod(method, watch=watch),
        progress=progress,
    )
    return Rerun(agreement, data, labels, trained, door, method.shown)


def train_again(
    config: Config,
    data: DataHoldings,
    labels: LabelHoldings,
    *,
    watched: Callable[[Method], M],
    progress: Progress = silent,
) -> tuple[Agreement, WatchedDoor, M, Trained]:
    """Train as the run did, with a method that is watched."""
    agreement = agree(config, data, labels)
    with simulated_door(agreement, data) as (inner, agreement):
        door, method = WatchedDoor(inner), watched(agreement.method)
        trained = train(
            replace(agreement, method=method),
            data,
            labels,
            door,
            progress=progress,
            responses=simulated_responses(config, labels),
        )
    return agreement, door, method, trained


@contextmanager
def simulated_door(agreement: Agreement, data: DataHoldings) -> Iterator[tuple[Door, Agreement]]:
    """Open the door that a simulated run has, charged to a ledger that goes away."""
    noise = NoiseSource.for_simulation(agreement.config.run.seed)
    with tempfile.TemporaryDirectory(prefix="vesper-attack-") as folder:
        with closing(Ledger(Path(folder) / "ledger.sqlite", clock=time.time)) as book:
            yield open_door(agreement, data.graph, book, noise, run="attack")


def refuse_other(run: Path, folder: Path, trained: Trained) -> None:
    """Refuse what was repeated if it is not the run of this folder."""
    path = run / "result.json"
    try:
        expected = json.loads(path.read_text(encoding="utf-8"))["validation"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path}: expected the result of a run beside its settings") from None
    found = trained.stages[trained.best_stage]["validation"]
    if not isinstance(expected, float) or abs(found - expected) > CLOSE * max(1.0, abs(found)):
        raise InputError(
            f"{folder}: repeated, the run reaches {found:.6g} on validation where {path} says "
            f"{expected}; give the folder it was trained on, and the version it was trained with"
        )
