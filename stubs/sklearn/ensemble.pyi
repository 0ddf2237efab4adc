from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

class HistGradientBoostingClassifier:
    def __init__(
        self,
        *,
        learning_rate: float = ...,
        max_iter: int = ...,
        max_leaf_nodes: int | None = ...,
        min_samples_leaf: int = ...,
        l2_regularization: float = ...,
        early_stopping: bool = ...,
        random_state: int | None = ...,
    ) -> None: ...
    def fit(self, features: NDArray[Any], labels: NDArray[Any]) -> Self: ...
    def predict_proba(self, features: NDArray[Any]) -> NDArray[np.float64]: ...
