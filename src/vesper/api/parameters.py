"""Parameters as scikit-learn has them: `__init__` stores, these three read and write.

With them `sklearn.base.clone`, `is_classifier` and `check_is_fitted` work, without a dependency on
it. Pipelines and grid searches hand over rows of a table, which a graph cannot be cut into; loop
over `set_params` instead.
"""

import inspect
from typing import Any, Self

from vesper.errors import InputError


class Parameters:
    """Every argument of `__init__` is an attribute of the same name, stored as it was given."""

    kind: str
    """`classifier` or `regressor`, as scikit-learn calls them."""

    @classmethod
    def _names(cls) -> dict[str, Any]:
        """Names and defaults, in the order of `__init__`."""
        known = inspect.signature(cls).parameters
        return {name: parameter.default for name, parameter in known.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Give all parameters; `deep` is there for scikit-learn and changes nothing."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **parameters: Any) -> Self:
        """Set some parameters; they count at the next fit."""
        for name, value in parameters.items():
            if name not in self._names():
                raise InputError(
                    f"{type(self).__name__}: unknown parameter '{name}', known are "
                    f"{', '.join(self._names())}; other settings go into settings={{...}}"
                )
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn, which alone asks, what kind of estimator this is."""
        from sklearn.utils import ClassifierTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type=self.kind,
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags() if self.kind == "classifier" else None,
            regressor_tags=RegressorTags() if self.kind == "regressor" else None,
        )

    def __repr__(self) -> str:
        changed = [
            f"{name}={getattr(self, name)!r}"
            for name, default in self._names().items()
            if getattr(self, name) != default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"
