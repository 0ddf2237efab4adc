import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.privacy.accounting.safe_numbers import bracket, safe_side


@given(root=st.floats(1e-6, 1e6))
def test_ends_on_the_safe_side_next_to_the_root(root: float) -> None:
    from_below = safe_side(lambda x: x <= root, safe=0.0, unsafe=1e7)
    from_above = safe_side(lambda x: x >= root, safe=1e7, unsafe=0.0)
    assert root * (1 - 1e-15) <= from_below <= root
    assert root <= from_above <= root * (1 + 1e-15)


def test_returns_only_points_at_which_the_condition_was_evaluated() -> None:
    # A condition made ragged by rounding: true and false alternate around the root.
    evaluated: dict[float, bool] = {}

    def ragged(x: float) -> bool:
        evaluated[x] = x + 1e-9 * math.sin(1e10 * x) <= 1.0
        return evaluated[x]

    assert evaluated[safe_side(ragged, safe=0.0, unsafe=2.0)]


@pytest.mark.parametrize(
    ("holds", "factor"), [(lambda x: x >= 3e5, 2.0), (lambda x: x <= 3e-7, 0.5)]
)
def test_bracket_finds_the_change_from_far_away(
    holds: Callable[[float], bool], factor: float
) -> None:
    safe, unsafe = bracket(holds, start=1.0, factor=factor)
    assert holds(safe)
    assert not holds(unsafe)
