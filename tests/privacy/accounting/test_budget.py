import dataclasses
import math

import pytest

from vesper.errors import InputError
from vesper.privacy.accounting.budget import Budget, require_finite


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
def test_refuses_an_invalid_epsilon(epsilon: float) -> None:
    with pytest.raises(InputError, match=r"Expected epsilon > 0, got epsilon=.*: give "):
        Budget(epsilon=epsilon, delta=1e-6)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-6, 2.0, math.nan])
def test_refuses_a_delta_outside_the_unit_interval(delta: float) -> None:
    with pytest.raises(InputError, match=r"Expected 0 < delta < 1, got delta=.*: give "):
        Budget(epsilon=1.0, delta=delta)


def test_takes_an_infinite_epsilon_but_does_not_plan_with_it() -> None:
    endless = Budget(epsilon=math.inf, delta=1e-6)
    assert not endless.is_finite
    with pytest.raises(InputError, match="NonPrivate"):
        require_finite(endless)


def test_is_frozen() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    field = dataclasses.fields(budget)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(budget, field, 2.0)


def test_a_notebook_shows_both_numbers() -> None:
    shown = Budget(epsilon=4.0, delta=1e-6)._repr_html_()
    assert ">4<" in shown
    assert ">1e-06<" in shown
