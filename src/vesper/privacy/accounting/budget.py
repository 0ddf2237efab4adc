"""Budget of one graph: (epsilon, delta), or explicitly no privacy.

| value | resulting noise |
| --- | --- |
| `Budget` with finite epsilon | above 0, always |
| `Budget` with epsilon = inf | refused wherever noise is computed; use `NonPrivate` |
| `NonPrivate()` | exactly 0 |

A run without noise therefore requires `NonPrivate` in the code.
"""

import math
from dataclasses import dataclass
from numbers import Real

from vesper.drawing.notebook import notebook_table
from vesper.privacy.accounting.safe_numbers import expect, expect_delta


@dataclass(frozen=True, kw_only=True)
class Budget:
    """At most (epsilon, delta) between neighbouring graphs, over everything ever released.

    Raises:
        InputError: epsilon is not above 0, or delta is not in (0, 1).

    >>> Budget(epsilon=1.0, delta=1e-6).is_finite
    True
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        for name, value in (("epsilon", self.epsilon), ("delta", self.delta)):
            expect(
                isinstance(value, Real),
                name=name,
                wanted="a number",
                got=value,
                remedy="give a number",
            )
        expect(
            self.epsilon > 0,
            name="epsilon",
            wanted="epsilon > 0",
            got=self.epsilon,
            remedy="give a number such as 1 or 4; for no privacy at all use NonPrivate",
        )
        expect_delta(self.delta)

    @property
    def is_finite(self) -> bool:
        """Whether epsilon is finite; an infinite epsilon guarantees nothing."""
        return math.isfinite(self.epsilon)

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        facts = {"epsilon": f"{self.epsilon:g}", "delta": f"{self.delta:g}"}
        return notebook_table("Budget", facts)


@dataclass(frozen=True)
class NonPrivate:
    """No guarantee: the only value for which planned noise is 0."""


def require_finite(budget: Budget) -> Budget:
    """Return the budget if its epsilon is finite.

    Raises:
        InputError: epsilon is infinite.
    """
    expect(
        budget.is_finite,
        name="epsilon",
        wanted="a finite epsilon",
        got=budget.epsilon,
        remedy="pass NonPrivate() for a run without noise",
    )
    return budget
