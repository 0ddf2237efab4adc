"""Whether an estimator is fitted, and what it says before it is."""

from typing import TYPE_CHECKING, NoReturn

from vesper.api.parameters import Parameters
from vesper.errors import InputError

if TYPE_CHECKING:
    from vesper.api.fitted import FittedModel

NOT_FITTED = "call fit(graph, features, labels, train=...) first"


class FittedState(Parameters):
    """Parameters, and the fitted model once there is one."""

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
