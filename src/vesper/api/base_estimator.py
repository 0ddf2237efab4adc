"""Base class of the estimators: parameters, fit, score and report.

Both parties run in this process, with the same session and protocol as across a network.

Parameters follow scikit-learn: `__init__` stores them, `get_params` and `set_params` read and
write them. So `sklearn.base.clone`, `is_classifier` and `check_is_fitted` work, without a
dependency on scikit-learn. Pipelines and grid searches split their data by rows of a table, which
is not possible for a graph; loop over `set_params` instead.
"""

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

from vesper.api.parameters import Parameters, config_of
from vesper.errors import InputError
from vesper.method.settings import Config
from vesper.progress import Progress

if TYPE_CHECKING:
    from vesper.api.encoder import MakeEncoder
    from vesper.api.fitted import FittedModel
    from vesper.api.inputs import FitInputs
    from vesper.api.targets import Targets
    from vesper.report.privacy import Privacy

NOT_FITTED = "call fit(graph, features, labels, train=...) first"
SEEDS = 1 << 31


class Estimator(Parameters, ABC):
    """Estimator that fits on a private graph, predicts its nodes and reports the guarantee."""

    privacy_: "Privacy"
    metric_: str
    validation_: float
    stage_: int
    n_features_in_: int

    def __init__(  # noqa: PLR0913 (scikit-learn reads the parameters from this signature)
        self,
        *,
        epsilon: float = 4.0,
        delta: float | None = None,
        method: str = "certified",
        aggregator: str = "gin",
        hops: int | None = None,
        seed: int | None = None,
        simulate_noise: bool = False,
        ledger: Path | str | None = None,
        graph_name: str | None = None,
        encoder: "str | MakeEncoder | None" = None,
        settings: Mapping[str, Any] | None = None,
        progress: bool | Progress = False,
    ) -> None:
        self.epsilon, self.delta = epsilon, delta
        self.method, self.aggregator, self.hops = method, aggregator, hops
        self.seed, self.simulate_noise = seed, simulate_noise
        self.ledger, self.graph_name = ledger, graph_name
        self.encoder = encoder
        self.settings, self.progress = settings, progress

    def fit(
        self,
        graph: Any,
        features: Any = None,
        labels: Any = None,
        *,
        train: Any = None,
        validation: Any = None,
    ) -> Self:
        """Train on the labels of some nodes.

        Args:
            graph: a `vesper.Graph`, a PyG `Data`, a DGL graph, a scipy sparse matrix, or edges of
                shape (2, E). Directions, repeats and self-loops are dropped.
            features: (num_nodes, num_features), not computed from edges. May be omitted when a PyG
                or DGL graph holds them (`x`, `feat`), and so may the rest (`y`, `train_mask`,
                `val_mask`).
            labels: one per node, or a mapping from node number to label. Only the labels of `train`
                and `validation` are used.
            train: node numbers or a mask.
            validation: node numbers or a mask; None holds out a fifth of `train`.

        Raises:
            InputError: some input cannot be used; the message says what to do.
            BudgetError: this graph has too little budget left in the ledger.
        """
        seed = secrets.randbelow(SEEDS) if self.seed is None else self.seed
        config = self._config(seed)  # before anything heavy is imported
        from vesper.api.inputs import prepare_inputs
        from vesper.api.training import fit_in_process, preserve_torch_state, progress_reporter

        inputs = prepare_inputs(
            graph,
            features,
            labels,
            train=train,
            validation=validation,
            targets=self._targets(config),
            seed=seed,
        )
        with preserve_torch_state(), progress_reporter(self.progress) as progress:
            self._fitted = fit_in_process(
                config,
                inputs,
                is_simulated=self.simulate_noise,
                ledger=None if self.ledger is None else Path(self.ledger),
                graph_name=self.graph_name,
                encoder=self.encoder if callable(self.encoder) else None,
                progress=progress,
            )
        contents = self._fitted.contents
        self.privacy_, self.metric_ = contents.privacy, contents.metric
        self.validation_, self.stage_ = contents.validation, contents.chosen_stage
        self.n_features_in_ = inputs.data.features.shape[1]
        self._after_fit(inputs)
        return self

    def score(self, ids: Any, labels: Any) -> float:
        """Compute the metric on some nodes, in percent as `validation_`.

        Args:
            ids: node numbers or a mask.
            labels: one per id, in the order of `ids`; or one per node of the graph; or a mapping
                from node number to label.
        """
        return self._require_fitted().evaluate(ids, labels).metric

    def report(self, path: Path | str, *, ids: Any = None, labels: Any = None) -> Path:
        """Write an HTML page for people: what was trained, how good it is, what is guaranteed.

        Args:
            path: the file to write; an existing one is replaced atomically.
            ids: test nodes to evaluate on the page; None for the validation nodes.
            labels: labels of the test nodes, as in `score`.
        """
        if not isinstance(path, str | os.PathLike):
            raise InputError(f"path: expected the path of the page, got {type(path).__name__}")
        contents = self._require_fitted().contents
        if ids is None and labels is not None:
            raise InputError("ids: expected the nodes of the labels, got none; pass ids=...")
        if ids is not None:
            contents = contents.with_test(self._require_fitted().evaluate(ids, labels))
        from vesper.report.page import write_report

        return write_report(contents, Path(path))

    @abstractmethod
    def _targets(self, config: Config) -> "Targets":
        """Return how labels are read."""

    @abstractmethod
    def _after_fit(self, inputs: "FitInputs") -> None:
        """Set attributes that follow from the labels."""

    def _config(self, seed: int) -> Config:
        return config_of(self, seed=seed)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether the model is fitted, for `sklearn.utils.validation.check_is_fitted`."""
        return vars(self).get("_fitted") is not None

    def _require_fitted(self) -> "FittedModel":
        fitted: FittedModel | None = vars(self).get("_fitted")
        if fitted is None:
            raise InputError(f"this model is not trained yet; {NOT_FITTED}")
        return fitted

    def __getattr__(self, name: str) -> NoReturn:
        if name.endswith("_") and not name.startswith("_"):
            raise AttributeError(f"{name} is not available yet; {NOT_FITTED}")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
