"""The contract of scikit-learn's estimators, without scikit-learn."""

import pytest

from vesper import InputError, Vesper


def test_a_clone_has_the_same_parameters() -> None:
    settings = {"epochs": 3}
    model = Vesper(epsilon=2.0, hops=1, settings=settings)
    parameters = model.get_params(deep=False)
    copied = type(model)(**parameters)
    assert copied.get_params() == parameters
    assert copied.settings is settings, "stored as it was given"
    assert vars(model) == parameters, "nothing but parameters before the fit"


def test_parameters_are_stored_unchecked_and_set_by_name() -> None:
    model = Vesper(epsilon=-1.0)
    assert model.set_params(epsilon=1.0, method="mlp") is model
    assert (model.epsilon, model.method) == (1.0, "mlp")
    with pytest.raises(InputError, match=r"Vesper: unknown parameter 'width', known are epsilon"):
        model.set_params(width=3)


def test_repr_shows_what_differs() -> None:
    assert repr(Vesper()) == "Vesper()"
    assert repr(Vesper(epsilon=1.0, method="mlp")) == "Vesper(epsilon=1.0, method='mlp')"
