"""`VesperRegressor`, the predictor of a number per node."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vesper.api.base_estimator import Estimator
from vesper.errors import InputError
from vesper.method.settings import Config
from vesper.model.evaluation import NUMBER_METRICS

if TYPE_CHECKING:
    from vesper.api.fitted import FittedModel
    from vesper.api.targets import NumberTargets


class VesperRegressor(Estimator):
    """Node regressor with the same guarantee and the same parameters as `Vesper`.

    With `settings={"task": "ranking"}` only the order of the numbers matters, and predictions are
    positions in that order.

    Attributes:
        privacy_: what is guaranteed: `epsilon`, `delta`, `is_private`, `simulated`, `noise`,
            `verdict`.
        metric_: `r2`, the share of explained variance; `spearman` for a ranking.
        validation_: the metric on validation nodes, in percent.
        stage_: number of releases that the chosen stage builds on, for methods with such stages.
        n_features_in_: number of feature columns.

    Example:
        >>> import numpy as np, vesper
        >>> numbers = np.arange(60) / 10
        >>> graph = vesper.Graph.from_edges(60, [(k, (k + 1) % 60) for k in range(60)])
        >>> model = vesper.VesperRegressor(seed=0, settings={"epochs": 2, "width": 8})
        >>> model = model.fit(graph, numbers[:, None], numbers, train=range(0, 60, 2))
        >>> model.predict([1, 3]).shape, model.metric_
        ((2,), 'r2')
    """

    kind = "regressor"

    def predict(self, ids: Any) -> NDArray[np.float64]:
        """Return the number of each node, or its position in the order, at no further cost."""
        return self._require_fitted().predict(ids)

    def _config(self, seed: int) -> Config:
        config = super()._config(seed)
        if config.run.task in NUMBER_METRICS:
            return config
        if config.run.task != "auto":
            raise InputError(
                f"settings: VesperRegressor predicts numbers, expected task 'regression' or "
                f"'ranking', got '{config.run.task}'; use Vesper for classes"
            )
        run = config.run.model_copy(update={"task": "regression"})
        return config.model_copy(update={"run": run})

    def _targets(self, config: Config) -> "NumberTargets":
        from vesper.api.targets import NumberTargets

        return NumberTargets(NUMBER_METRICS[config.run.task])

    def _after_fit(self, fitted: "FittedModel") -> None:
        """Do nothing: numbers have no classes."""
