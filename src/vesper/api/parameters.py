"""Parameters of an estimator, as scikit-learn expects them, and the settings that they stand for.

Each argument of `__init__` is stored unchanged, in an attribute of its name. Settings are checked
before anything heavy is imported: a mistake is reported at once, and not after seconds.
"""

import inspect
import os
from collections.abc import Mapping
from typing import Any, Self

from vesper.errors import InputError
from vesper.method.settings import Config
from vesper.privacy.ledger.graph_name import SIMULATED_NOISE_NEEDS_NO_LEDGER
from vesper.session.config import load_config


class Parameters:
    """Parameters: each argument of `__init__` is stored unchanged, in an attribute of its name."""

    kind: str
    """`classifier` or `regressor`, in the terms of scikit-learn."""

    @classmethod
    def _names(cls) -> dict[str, Any]:
        """Return names and defaults, in the order of `__init__`."""
        known = inspect.signature(cls).parameters
        return {name: parameter.default for name, parameter in known.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters; `deep` exists for scikit-learn and has no effect."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **parameters: Any) -> Self:
        """Set some parameters; they take effect at the next fit."""
        for name, value in parameters.items():
            if name not in self._names():
                raise InputError(
                    f"{type(self).__name__}: unknown parameter '{name}', known are "
                    f"{', '.join(self._names())}; other settings go into settings={{...}}"
                )
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """Return the kind of estimator; only scikit-learn calls this."""
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
            if getattr(self, name) is not default and getattr(self, name) != default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def config_of(estimator: Parameters, *, seed: int) -> Config:
    """Check the parameters of an estimator, and return the settings of its fit.

    Raises:
        InputError: a parameter or a setting cannot be used.
    """
    given = estimator.get_params()
    _refuse_types(given)
    if given["simulate_noise"] and given["ledger"] is not None:
        raise InputError(SIMULATED_NOISE_NEEDS_NO_LEDGER.format(ledger="ledger"))
    if given["epsilon"] is None:
        raise InputError("epsilon: expected a number, or math.inf for no privacy, got None")
    encoder = given["encoder"]
    named = {
        "epsilon": given["epsilon"],
        "delta": given["delta"],
        "method": given["method"],
        "aggregator": given["aggregator"],
        "hops": given["hops"],
        "encoder": None if callable(encoder) else encoder,
        "seed": seed,
    }
    others = _other_settings(given["settings"], named, estimator=type(estimator).__name__)
    chosen = {key: value for key, value in named.items() if value is not None}
    return load_config(None, others | chosen)


def _refuse_types(given: Mapping[str, Any]) -> None:
    ledger, name, simulate = given["ledger"], given["graph_name"], given["simulate_noise"]
    if not isinstance(ledger, str | os.PathLike | None):
        raise InputError(f"ledger: expected a path, got {type(ledger).__name__}")
    if not isinstance(name, str | None):
        raise InputError(f"graph_name: expected a text, got {type(name).__name__}")
    if not isinstance(simulate, bool):
        raise InputError(f"simulate_noise: expected True or False, got {simulate!r}")


def _other_settings(
    settings: Any, parameters: Mapping[str, Any], *, estimator: str
) -> dict[str, Any]:
    """Return the settings that are no parameters; refuse those that are."""
    if not isinstance(settings, Mapping | None):
        raise InputError(
            f"settings: expected a mapping such as {{'epochs': 30}}, got {type(settings).__name__}"
        )
    others = dict(settings or {})
    wrong = [key for key in others if not isinstance(key, str)]
    if wrong:
        raise InputError(f"settings: expected names of settings as keys, got {wrong[0]!r}")
    twice = sorted(key for key in others if key.rpartition(".")[2] in parameters)
    if twice:
        raise InputError(
            f"settings: expected settings that are not parameters, got '{twice[0]}'; write "
            f"{estimator}({twice[0].rpartition('.')[2]}=...)"
        )
    return others
