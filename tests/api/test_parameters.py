"""Estimators follow the interface of scikit-learn."""

import subprocess
import sys

import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from vesper import InputError, Vesper, VesperRegressor


def test_a_clone_has_the_same_parameters() -> None:
    settings = {"epochs": 3}
    model = Vesper(epsilon=2.0, hops=1, settings=settings)
    parameters = model.get_params(deep=False)
    copied = type(model)(**parameters)
    assert copied.get_params() == parameters
    assert copied.settings is settings, "stored unchanged"
    assert vars(model) == parameters, "nothing but parameters before the fit"


def test_parameters_are_stored_unchecked_and_set_by_name() -> None:
    model = Vesper(epsilon=-1.0)
    assert model.set_params(epsilon=1.0, method="mlp") is model
    assert (model.epsilon, model.method) == (1.0, "mlp")
    with pytest.raises(InputError, match=r"Vesper: unknown parameter 'width', known are epsilon"):
        model.set_params(width=3)


def test_repr_shows_parameters_that_differ() -> None:
    assert repr(Vesper()) == "Vesper()"
    assert repr(Vesper(epsilon=1.0, method="mlp")) == "Vesper(epsilon=1.0, method='mlp')"


def test_scikit_learn_recognises_the_estimators() -> None:
    assert is_classifier(Vesper())
    assert not is_regressor(Vesper())
    assert is_regressor(VesperRegressor())
    assert clone(Vesper(epsilon=2.0)).epsilon == 2.0
    with pytest.raises(NotFittedError):
        check_is_fitted(Vesper())


REFUSE = """
import sys, vesper
for wrong in (
    {"epsilon": -1.0},
    {"method": "vespre"},
    {"ledger": "ledger.sqlite", "simulate_noise": True},
    {"settings": {"epoch": 2}},
):
    try:
        vesper.Vesper(**wrong).fit(None)
    except vesper.InputError:
        assert "torch" not in sys.modules, wrong
    else:
        raise AssertionError(wrong)
"""


def test_invalid_settings_are_refused_before_anything_heavy_is_imported() -> None:
    subprocess.run([sys.executable, "-c", REFUSE], check=True)
