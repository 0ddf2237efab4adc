"""`Vesper`, the classifier of nodes."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vesper.api.base_estimator import Estimator
from vesper.errors import InputError
from vesper.method.settings import Config

if TYPE_CHECKING:
    from vesper.api.fitted import FittedModel
    from vesper.api.targets import ClassTargets


class Vesper(Estimator):
    """Node classifier whose messages to the label party do not reveal edges.

    Args:
        epsilon: privacy budget of the graph; inf for no privacy.
        delta: None for the largest power of ten that is at most 1 / (10 num_nodes).
        method: how to learn; `mlp` reads no edge, for comparison.
        aggregator: how neighbours are weighted: `gin` all equally, `gcn` less the more neighbours
            they have, or `gcn-clamped`, `mean`, `gat`, `max`; all at the same epsilon.
        hops: how many edges away messages can come from; None lets the method choose.
        seed: seed of first weights, of the order of batches and of the choice of validation nodes;
            None for a new one. Noise never comes from it, so a fit with a seed is private.
        simulate_noise: draw the noise from the seed as well. Then a fit can be repeated bit for
            bit, and is **not private**: for trials and tests. It is charged to no ledger.
        ledger: file to charge; a fit that needs more than is left is refused. None counts this fit
            alone, in a temporary ledger.
        graph_name: name of the graph in the ledger, to which its budget belongs; needed with a
            ledger. Use one name for all versions of a graph.
        encoder: encoder of the features, which never sees an edge: `mlp`, `gru` or `transformer`
            (these two take `steps` in `settings`), or a function (num_inputs, width) that returns a
            torch module from (B, num_inputs) to (B, width). Its inputs are views of the features,
            concatenated: all scaled, all ranked, and, where there are at most 64 features, all in
            16 bins each. So the first `n_features_in_` columns are the scaled features themselves.
        settings: any other settings, as in `vesper simulate --set`.
        progress: True for a progress bar, or a callable (task, done, total, note).

    Attributes:
        privacy_: what is guaranteed: `epsilon`, `delta`, `is_private`, `simulated`, `noise`,
            `verdict`.
        classes_: distinct labels, ascending; the columns of `predict_proba`.
        metric_: `roc_auc` for two classes, `accuracy` for more.
        validation_: the metric on validation nodes, in percent.
        stage_: number of releases that the chosen stage builds on, for methods with such stages.
        n_features_in_: number of feature columns.

    Example:
        >>> import numpy as np, vesper
        >>> labels = np.arange(60) % 2
        >>> graph = vesper.Graph.from_edges(60, [(k, (k + 2) % 60) for k in range(60)])
        >>> model = vesper.Vesper(epsilon=4.0, seed=0, settings={"epochs": 2, "width": 8})
        >>> model = model.fit(graph, np.eye(2)[labels], labels, train=range(40))
        >>> model.predict_proba([50, 51]).shape
        (2, 2)
        >>> model.privacy_.epsilon, model.privacy_.is_private
        (4.0, True)
    """

    kind = "classifier"
    classes_: NDArray[Any]

    def predict_proba(self, ids: Any) -> NDArray[np.float64]:
        """Return class probabilities, (len(ids), len(classes_)), of any nodes at no further cost.

        Methods that sample neighbours (`gin`, `gcn`, `vfgnn`, `edgerand`, `lapgraph` and the
        paper's) sample again in every call; `vfgnn` and the paper's also draw new noise, which
        their claimed epsilon does not count. The others return the same values every time.
        """
        return self._require_fitted().predict(ids)

    def predict(self, ids: Any) -> NDArray[Any]:
        """Return the most probable class of each node."""
        probabilities = self._require_fitted().predict(ids)
        chosen: NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return chosen

    def _config(self, seed: int) -> Config:
        config = super()._config(seed)
        if config.run.task not in ("auto", "classification"):
            raise InputError(
                f"settings: Vesper predicts classes, expected task 'classification', got "
                f"'{config.run.task}'; use VesperRegressor for numbers"
            )
        return config

    def _targets(self, config: Config) -> "ClassTargets":
        from vesper.api.targets import ClassTargets

        return ClassTargets()

    def _after_fit(self, fitted: "FittedModel") -> None:
        self.classes_ = fitted.distinct
