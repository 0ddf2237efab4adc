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
from typing import TYPE_CHECKING, Any, Self

from vesper.api.fitted_state import FittedState
from vesper.api.parameters import config_of
from vesper.errors import InputError
from vesper.method.settings import Config
from vesper.progress import Progress

if TYPE_CHECKING:
    from vesper.api.encoder import MakeEncoder
    from vesper.api.fitted import FittedModel
    from vesper.api.inputs import FitInputs
    from vesper.api.node_estimator import NodeEstimator
    from vesper.api.targets import Targets
    from vesper.report.privacy import Privacy

SEEDS = 1 << 31


class Estimator(FittedState, ABC):
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
        ids: Any = None,
    ) -> Self:
        """Train on the labels of some nodes.

        Args:
            graph: a `vesper.Graph`, a PyG `Data`, a DGL or networkx graph, an adjacency matrix
                (dense, scipy or torch), an edge table (pandas, polars, Arrow) or edges of shape
                (2, E). Directions, repeats and self-loops are dropped.
            features: (num_nodes, num_features) or a data frame, not computed from edges. May be
                omitted when a PyG or DGL graph holds them (`x`, `feat`), and so may the rest (`y`,
                `train_mask`, `val_mask`).
            labels: one per node, a mapping from node to label, or a pandas column, which is aligned
                by its index. Only the labels of `train` and `validation` are used.
            train: nodes or a mask.
            validation: nodes or a mask; None holds out a fifth of `train`.
            ids: ids of the nodes (whole numbers or text), one per row of `features`, or the name of
                their column; None takes the index of a pandas frame that has one, otherwise row
                numbers. Wherever nodes are named, also in edges and in `predict`, ids are meant.

        Raises:
            InputError: some input cannot be used; the message says what to do.
            BudgetError: this graph has too little budget left in the ledger.
        """
        seed = secrets.randbelow(SEEDS) if self.seed is None else self.seed
        self._config(seed)  # refuses settings before anything heavy is imported
        from vesper.api.charged_fit import FitRequest, fit_once
        from vesper.api.inputs import prepare_inputs
        from vesper.api.training import preserve_torch_state, progress_reporter

        def inputs_of(config: Config) -> "FitInputs":
            return prepare_inputs(
                graph,
                features,
                labels,
                train=train,
                validation=validation,
                ids=ids,
                targets=self._targets(config),
                seed=config.run.seed,
            )

        with preserve_torch_state(), progress_reporter(self.progress) as progress:
            request = FitRequest(
                kind=type(self).__name__,
                parameters=self.get_params(),
                config_of=self._config,
                inputs_of=inputs_of,
                encoder=self.encoder if callable(self.encoder) else None,
                progress=progress,
            )
            self._adopt(fit_once(request, seed=seed))
        return self

    def _adopt(self, fitted: "FittedModel") -> None:
        """Take what a fit has learned, now or before."""
        self._fitted, contents = fitted, fitted.contents
        self.privacy_, self.metric_ = contents.privacy, contents.metric
        self.validation_, self.stage_ = contents.validation, contents.chosen_stage
        self.n_features_in_ = fitted.model.features.shape[1]
        self._after_fit(fitted)

    def score(self, ids: Any, labels: Any = None) -> float:
        """Compute the metric on some nodes, in percent as `validation_`.

        Args:
            ids: nodes or a mask; or a PyG `Data`, for its `test_mask` and `y`.
            labels: one per id, in the order of `ids`; or one per node of the graph; or a mapping
                from node to label; or a pandas column, which is aligned by its index.
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

    def save(self, path: Path | str) -> Path:
        """Write the fitted model to one file, without pickle and without any source of noise.

        The file is the data party's and the label party's together: it holds features, labels of
        training nodes, and what was released of the graph, each marked in `for_whom` (`facts` in
        the file is JSON) with whose eyes it is for. It holds no edge, and is readable by this user
        only. A loaded model predicts the same, bit for bit.

        Args:
            path: file to write; an existing one is replaced atomically.

        Raises:
            InputError: it cannot be written, or the method reads the graph for each prediction.
        """
        from vesper.api.saving import checked_path, encoded_estimator, write_model

        file, fitted = checked_path(path), self._require_fitted()
        write_model(file, encoded_estimator(type(self).__name__, self.get_params(), fitted))
        return file

    @classmethod
    def load(cls, path: Path | str, *, encoder: "MakeEncoder | None" = None) -> Self:
        """Read a model that `save` wrote, or that a fit with a ledger left in `LEDGER.fits`.

        Args:
            path: the file.
            encoder: the function that made the encoder, if it was not one of vesper's.

        Raises:
            InputError: it is damaged, of another version, or holds another kind of model.
        """
        from vesper.api.saving import checked_path, read_model

        file = checked_path(path)
        return cls._decoded(read_model(file), encoder=encoder, where=str(file))

    @classmethod
    def _decoded(cls, content: bytes, *, encoder: "MakeEncoder | None", where: str) -> Self:
        from vesper.api.saving import decoded_estimator

        parameters, fitted = decoded_estimator(
            content, kind=cls.__name__, encoder=encoder, where=where
        )
        estimator = cls(**parameters)
        estimator._adopt(fitted)
        return estimator

    def __getstate__(self) -> dict[str, Any]:
        """Return parameters, and the content of the file that `save` would write, for pickle."""
        parameters = self.get_params()
        fitted: FittedModel | None = vars(self).get("_fitted")
        if fitted is None:
            return {"parameters": parameters, "model": None}
        from vesper.api.saving import encoded_estimator

        return {
            "parameters": parameters,
            "model": encoded_estimator(type(self).__name__, parameters, fitted),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Load what `__getstate__` returned."""
        parameters, model = state["parameters"], state["model"]
        vars(self).update(parameters)
        if model is not None:
            encoder = parameters["encoder"] if callable(parameters["encoder"]) else None
            loaded = self._decoded(model, encoder=encoder, where="pickled model")
            self._adopt(loaded._require_fitted())

    def on_graph(
        self, graph: Any, features: Any = None, *, graph_name: str | None = None, ids: Any = None
    ) -> Self:
        """Return this model on a later graph, whose nodes it predicts; nothing is trained.

        What that needs of the later graph is released here, once: it is charged to the budget of
        `graph_name`, and predictions afterwards are free. Training nodes that are still there, by
        id or number, keep their labels.

        Args:
            graph: as in `fit`.
            features: the same columns as in `fit`.
            graph_name: name of the later graph in the ledger; its budget is separate from that of
                the graph of training only if it is another graph. Needed with a ledger.
            ids: as in `fit`.

        Raises:
            InputError: some input cannot be used.
            BudgetError: the later graph has too little budget left in the ledger.
        """
        fitted = self._require_fitted()
        from vesper.api.later_graph import fitted_on_later_graph
        from vesper.api.training import preserve_torch_state

        later = type(self)(**self.get_params())
        later.graph_name = graph_name
        with preserve_torch_state():
            later._adopt(
                fitted_on_later_graph(
                    fitted,
                    graph,
                    features,
                    ids=ids,
                    kind=type(self).__name__,
                    parameters=later.get_params(),
                )
            )
        return later

    def for_nodes(self, graph: Any, features: Any = None, *, ids: Any = None) -> "NodeEstimator":
        """Return an estimator on one graph with `fit(ids, labels)`, for scikit-learn.

        `GridSearchCV`, `cross_val_score` and `Pipeline` split or transform rows of X, which the
        nodes of a graph do not allow; here X has the ids (or numbers) of nodes.

        Args:
            graph: as in `fit`.
            features: as in `fit`.
            ids: as in `fit`.
        """
        from vesper.api.node_estimator import NodeClassifier, NodeEstimator, SharedGraph

        kind = NodeClassifier if self.kind == "classifier" else NodeEstimator
        return kind(self, SharedGraph(graph, features, ids))

    @abstractmethod
    def _targets(self, config: Config) -> "Targets":
        """Return how labels are read."""

    @abstractmethod
    def _after_fit(self, fitted: "FittedModel") -> None:
        """Set attributes that follow from the labels."""

    def _config(self, seed: int) -> Config:
        return config_of(self, seed=seed)
