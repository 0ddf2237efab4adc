from typing import Any

from numpy.typing import NDArray

def roc_auc_score(labels: NDArray[Any], scores: NDArray[Any]) -> float: ...
