"""One trial: a scenario, a variant of it, and faults; and what came of it."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from chaos.faults import Action, Fault, Kind

MOST_CALLS: dict[Kind, int] = {
    "fsync": 50,
    "replace": 24,
    "link": 3,
    "unlink": 10,
    "write": 59,
    "sql": 145,
    "send": 31,
    "receive": 31,
}
"""As many calls of each kind as a party makes at most in a short run."""


class FailedError(Exception):
    """Something that is promised did not hold."""


class SkippedError(Exception):
    """The trial needs what is not on this machine."""


@dataclass(frozen=True)
class Trial:
    """What to do; it follows from the seed and the number alone."""

    seed: int
    number: int
    scenario: str
    variant: str

    @property
    def chance(self) -> Random:
        """Source of all choices of this trial, from its beginning."""
        return Random(f"{self.seed} {self.number} {self.scenario} {self.variant}")

    def __str__(self) -> str:
        return f"{self.number} {self.scenario} {self.variant}"


@dataclass
class Report:
    """What happened in a trial, noted while it runs."""

    faults: list[str] = field(default_factory=list)
    """Faults that happened."""
    codes: list[str] = field(default_factory=list)
    """Exit codes of processes, in order."""


@dataclass(frozen=True)
class TrialResult:
    """One line of the results file."""

    seed: int
    number: int
    scenario: str
    variant: str
    outcome: str
    """held, failed or skipped."""
    faults: list[str]
    codes: list[str]
    seconds: float
    detail: str = ""


def draw_fault(
    chance: Random,
    actions: tuple[Action, ...],
    *,
    kinds: tuple[Kind, ...] = tuple(MOST_CALLS),
    most: int = 1000,
) -> Fault:
    """Choose a fault, half of the time among early calls, which every run makes.

    Args:
        chance: source of the choice.
        actions: what may happen.
        kinds: at calls of which kinds.
        most: largest number of a call.
    """
    action = chance.choice(actions)
    if action == "full":
        kinds = tuple(kind for kind in kinds if kind in ("fsync", "replace", "link", "write"))
    kind = chance.choice(kinds)
    limit = min(MOST_CALLS[kind], most)
    early = round((limit + 0.5) ** chance.random())
    number = early if chance.random() < 0.5 else chance.randint(1, limit)
    whens: list[Any] = ["before", "after"] if action != "full" else ["before"]
    if kind == "write" and action in ("kill", "power"):
        whens.append("within")
    seconds = chance.choice((-1, 1)) * chance.choice((1, 30, 300)) * 86_400.0
    return Fault(kind, chance.choice(whens), max(1, number), action, seconds)
