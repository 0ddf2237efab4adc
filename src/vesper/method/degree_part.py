"""How much of a message should be the constant that sums to the degree.

    message = (c, sqrt(1 - c^2) row):   what c lets degree and row together explain most?

Another share than the default is taken when it explains more even if what gains from it explains
less than it seems, and what loses more.
"""

from dataclasses import dataclass, replace

from vesper.method.explained import Explained

DOUBT = 2.0
"""Deviations of chance by which it might."""
BETTER = 1.02
"""How many times as much another share must explain all the same."""
SHARES = tuple(k / 20 for k in range(3, 19))
"""What c may be."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Pair:
    """Degree and what is said beside it, which share the length of a message.

    Args:
        degree: what the degree explains.
        other: what the other part explains.
        both: share that they explain together.
        degree_gain: how many times as strong as in the trial it is when it is all of a message.
        other_gain: the same for the other part.
    """

    degree: Explained
    other: Explained
    both: float
    degree_gain: float
    other_gain: float

    def explain(self, share: float, doubt: float) -> float:
        """What they explain with this degree share; `doubt` is for the degree, against the other.

        What both tell is counted once, where it is heard better.
        """
        degree, other = self.degree_gain * share**2, self.other_gain * (1 - share**2)

        def in_all(first: Explained, second: Explained) -> float:
            return first.with_less_noise(degree, doubt=doubt) + second.with_less_noise(
                other, doubt=-doubt
            )

        return max(
            in_all(self.degree, replace(self.other, share=self.both - self.degree.share)),
            in_all(replace(self.degree, share=self.both - self.other.share), self.other),
        )

    def gain(self, share: float, default: float, *, doubt: float = DOUBT) -> float:
        """How many times as much as with the default, in the worse case."""
        signed = -doubt if share > default else doubt
        return self.explain(share, signed) / max(self.explain(default, signed), 1e-300)

    def best(self, default: float, *, doubt: float = DOUBT, better: float = BETTER) -> float:
        """Choose the degree share."""

        def gain(share: float) -> float:
            return self.gain(share, default, doubt=doubt)

        best = max(SHARES, key=gain)
        return best if gain(best) > better else default
