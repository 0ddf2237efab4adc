"""What a page shows, whoever trained: a fitted `Vesper` or a run folder."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.method.settings import Config
from vesper.model.metric import evaluate
from vesper.report.charged import read_charged
from vesper.report.privacy import Privacy

METRICS = {"roc_auc": "ROC AUC", "accuracy": "Accuracy"}


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Nodes whose labels are known, and what the model says of them."""

    split: str
    """`validation` or `test`."""
    classes: tuple[str, ...]
    labels: NDArray[np.int64]  # (nodes,)
    probabilities: NDArray[np.float64]  # (nodes, classes)

    @property
    def scores(self) -> NDArray[np.float64]:
        """Log probabilities, none below the smallest number: (nodes, classes)."""
        return np.log(np.maximum(self.probabilities, np.finfo(np.float64).tiny))

    @property
    def metric(self) -> float:
        """Accuracy, or area under the curve for two classes, in percent."""
        return evaluate(self.scores, self.labels)


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Everything on the page. Nothing here was computed from edges but through releases."""

    method: str
    metric: str
    validation: float
    test: float | None
    chosen_stage: int
    stages: tuple[Mapping[str, float], ...]
    """Validation, and test where known, of each stage; stage 0 of several reads no edge."""
    privacy: Privacy
    config: Config
    sizes: Mapping[str, int]
    seconds: float | None = None
    judged: Judged | None = None

    @property
    def metric_label(self) -> str:
        """The metric as people call it."""
        return METRICS.get(self.metric, self.metric.replace("_", " "))

    def with_test(self, judged: Judged) -> "Contents":
        """The same page, judged on test nodes."""
        return replace(self, judged=judged, test=judged.metric)


def contents_of_run(folder: Path, *, ledger: Path | None = None) -> Contents:
    """Read the run folder of `vesper simulate`, or the state folder of a label party.

    Args:
        folder: of the run.
        ledger: the data party's, where it is at hand; a simulation has its own.
    """
    folder = folder / "result" if (folder / "result" / "result.json").exists() else folder
    config_text, result = _text(folder / "config.json"), _json(folder / "result.json")
    if isinstance(result, dict) and "session" in result and "metric" not in result:
        raise InputError(
            f"{folder}: this is the data party's side of a run, which knows no metric; give the "
            f"state folder of the label party"
        )
    try:
        session = result.get("session")
        config = Config.model_validate_json(config_text)
        facts = result["privacy"]
        epsilon = facts["certified_epsilon"]
        return Contents(
            method=result["method"],
            metric=result["metric"],
            validation=result["validation"],
            test=result["test"],
            chosen_stage=result["chosen_stage"],
            stages=tuple(result["stages"]),
            privacy=Privacy(
                epsilon=math.inf if epsilon is None else epsilon,
                delta=facts["delta"],
                is_private=facts["plan"] == "edge-free"
                or (session is not None and facts["plan"] == "certified"),
                plan=facts["plan"],
                claimed_epsilon=facts["claimed_epsilon"],
                noise=facts["noise"],
                noise_stds=tuple(facts["noise_stds"]),
                covers="a simulation: nothing was sent to anybody"
                if session is None
                else f"everything charged to the ledger of the data party; session {session[:8]}",
                charged=read_charged(
                    ledger or folder / "ledger.sqlite",
                    run=f"simulated {config.contract[:12]}"
                    if session is None
                    else f"session {session}",
                ),
            ),
            config=config,
            sizes={},
            seconds=result["seconds"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{folder}: expected a run folder of this version of vesper ({error}); run "
            f"'vesper simulate' again"
        ) from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        raise InputError(
            f"{path}: expected a run folder with {path.name}; give the --out of 'vesper simulate', "
            f"or the state folder of a label party"
        ) from None


def _json(path: Path) -> Any:
    try:
        return json.loads(_text(path))
    except ValueError as error:
        raise InputError(f"{path}: not readable as JSON ({error})") from None
