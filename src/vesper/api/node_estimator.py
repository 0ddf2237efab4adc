"""Estimator of node ids: the interface that searches and cross-validation of scikit-learn expect.

    model = Vesper(...).for_nodes(graph, features)
    model.fit(ids, labels)   model.predict(ids)   model.score(ids, labels)

Rows of a graph cannot be split, but ids of nodes can: X is one id or number per row, and graph and
features stay whole. Every fit is a fit of its own: a search over k settings would charge a ledger
k times, so search with simulated noise, and fit what was found once more with secret noise.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vesper.api.parameters import Parameters
from vesper.errors import InputError

NESTED = "estimator__"


class SharedGraph:
    """Graph, features and ids, shared by all clones of an estimator."""

    def __init__(self, graph: Any, features: Any, ids: Any) -> None:
        self.graph, self.features, self.ids = graph, features, ids

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return itself, since nothing changes it."""
        return self

    def __repr__(self) -> str:
        return f"SharedGraph({type(self.graph).__name__})"


class NodeEstimator(Parameters):
    """`Vesper` or `VesperRegressor` on one graph, fitted and queried by ids or node numbers.

    Args:
        estimator: its parameters can be searched, as `epsilon` or `estimator__epsilon`.
        graph: what all clones share.
    """

    def __init__(self, estimator: Parameters, graph: SharedGraph) -> None:
        self.estimator: Any = estimator  # with `fit`, which `Parameters` does not have
        self.graph, self.kind = graph, estimator.kind

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return both arguments and, if `deep`, the parameters of the estimator."""
        nested = self.estimator.get_params() if deep else {}
        named = {f"{NESTED}{name}": value for name, value in nested.items()}
        return {"estimator": self.estimator, "graph": self.graph, **named}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters of the estimator; they take effect at the next fit."""
        for name in ("estimator", "graph"):
            if name in parameters:
                setattr(self, name, parameters.pop(name))
        self.estimator.set_params(
            **{name.removeprefix(NESTED): value for name, value in parameters.items()}
        )
        return self

    def fit(self, ids: Any, labels: Any) -> Self:
        """Train on some nodes; a fifth of them is held out to choose the model.

        Args:
            ids: ids or numbers of the nodes, one per row.
            labels: one per id.

        Raises:
            InputError: some input cannot be used.
            BudgetError: this graph has too little budget left in the ledger.
        """
        nodes, values = _column(ids, "ids"), _column(labels, "labels")
        if len(nodes) != len(values):
            raise InputError(
                f"labels: expected one per id, which are {len(nodes)}, got {len(values)}"
            )
        shared = self.graph
        self.model_ = type(self.estimator)(**self.estimator.get_params()).fit(
            shared.graph,
            shared.features,
            dict(zip(nodes.tolist(), values.tolist(), strict=True)),
            train=nodes,
            ids=shared.ids,
        )
        return self

    def predict(self, ids: Any) -> NDArray[Any]:
        """Return the class or number of each node."""
        predicted: NDArray[Any] = self._fitted().predict(_column(ids, "ids"))
        return predicted

    def score(self, ids: Any, labels: Any) -> float:
        """Compute `model_.metric_` as a share of 1, the larger the better."""
        percent: float = self._fitted().score(_column(ids, "ids"), _column(labels, "labels"))
        return percent / 100

    def _fitted(self) -> Any:
        if "model_" not in vars(self):
            raise InputError("this model is not trained yet; call fit(ids, labels) first")
        return self.model_

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether the model is fitted, for `sklearn.utils.validation.check_is_fitted`."""
        return "model_" in vars(self)

    def __getattr__(self, name: str) -> Any:
        """Return what the fitted model has learned: `classes_`, `privacy_`, `metric_`."""
        if name.endswith("_") and not name.startswith("_") and "model_" in vars(self):
            return getattr(self.model_, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


class NodeClassifier(NodeEstimator):
    """The same for classes, with probabilities."""

    def predict_proba(self, ids: Any) -> NDArray[np.float64]:
        """Return class probabilities, (rows, len(classes_))."""
        probabilities: NDArray[np.float64] = self._fitted().predict_proba(_column(ids, "ids"))
        return probabilities


def _column(values: Any, what: str) -> NDArray[Any]:
    """Return a column of one value per row."""
    given = np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim != 1:
        raise InputError(
            f"{what}: expected one column, got shape {given.shape}; features belong into "
            f"for_nodes(graph, features), X has the ids of the nodes"
        )
    return np.array(given.tolist()) if given.dtype == object else given
