"""`Vesper`: classes of nodes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.api.base_estimator import Estimator
from vesper.api.inputs import FitInputs
from vesper.api.targets import ClassTargets
from vesper.errors import InputError
from vesper.method.settings import Config


class Vesper(Estimator):
    """A node classifier whose messages to the label party do not give away edges.

    Args:
        epsilon: privacy budget of the graph; inf for no privacy.
        delta: None for the largest power of ten at most 1 / (10 num_nodes).
        method: how to learn; `mlp` reads no edge, for comparison.
        aggregator: how neighbours weigh: `gin` all alike, `gcn` less the more neighbours they have,
            or `gcn-clamped`, `mean`, `gat`, `max`; all at the same epsilon.
        hops: how far messages travel; None lets the method choose.
        seed: None for a private fit, with noise from the operating system. A number repeats a fit
            bit for bit; its noise can be repeated too, so that fit is **not private**.
        ledger: file to charge; a budget belongs to a graph, and a fit for which too little is left
            is refused. None counts this fit alone, in a ledger that is thrown away.
        encoder: of features, which never sees an edge: `mlp`, `gru` or `transformer` (for these two
            `steps` goes into `settings`), or a function (num_inputs, width) that gives a torch
            module from (B, num_inputs) to (B, width). Inputs are views of the features, side by
            side: all scaled, all ranked, and where they are at most 64 all in 16 bins each. So the
            first `n_features_in_` columns are the scaled features themselves.
        settings: any other setting, as in `vesper simulate --set`.
        progress: True for a bar, or a callable (task, done, total).

    Attributes:
        privacy_: what is guaranteed: `epsilon`, `delta`, `is_private`, `noise`, `verdict`.
        classes_: distinct labels, ascending; columns of `predict_proba`.
        metric_: `roc_auc` for two classes, `accuracy` for more.
        validation_: the metric on validation nodes, in percent.
        stage_: how many releases the chosen stage builds on, where stages are releases.
        n_features_in_: columns of the features.

    Example:
        >>> import numpy as np, vesper
        >>> labels = np.arange(60) % 2
        >>> graph = vesper.Graph.from_edges(60, [(k, (k + 2) % 60) for k in range(60)])
        >>> model = vesper.Vesper(epsilon=4.0, seed=0, settings={"epochs": 2, "width": 8})
        >>> model = model.fit(graph, np.eye(2)[labels], labels, train=range(40))
        >>> model.predict_proba([50, 51]).shape
        (2, 2)
        >>> model.privacy_.epsilon, model.privacy_.is_private
        (4.0, False)
    """

    kind = "classifier"
    classes_: NDArray[Any]

    def predict_proba(self, ids: Any) -> NDArray[np.float64]:
        """Probability of each class, (len(ids), len(classes_)); any node, at no further cost.

        Methods that sample neighbours (`gin`, `gcn`, `vfgnn`, `edgerand`, `lapgraph` and the
        paper's) sample anew in every call; `vfgnn` and the paper's also draw noise anew, which
        their claimed epsilon does not count. The others give the same answer again.
        """
        return self._require_fitted().predict(ids)

    def predict(self, ids: Any) -> NDArray[Any]:
        """Most probable class of each node."""
        shares = self._require_fitted().predict(ids)
        chosen: NDArray[Any] = self.classes_[shares.argmax(axis=1)]
        return chosen

    def _targets(self, config: Config) -> ClassTargets:
        if config.run.task not in ("auto", "classification"):
            raise InputError(
                f"settings: Vesper finds classes, expected task 'classification', got "
                f"'{config.run.task}'; use VesperRegressor for numbers"
            )
        return ClassTargets()

    def _after_fit(self, inputs: FitInputs) -> None:
        self.classes_ = inputs.distinct
