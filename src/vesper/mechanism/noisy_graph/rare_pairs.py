"""Independent sampling of very many cells with one small chance, at a cost in the chosen cells.

    gap between two chosen cells = k   with probability   chance (1 - chance)^k

Discrete Laplace noise K with P(K = k) ~ exp(-rate |k|), given K >= 0, has exactly that law with
1 - chance = exp(-rate). For chances below `SMALLEST_SKIP` its table would be long: then cells are
chosen with a larger chance, and each is kept if another draw is at least 1, which happens with
probability 1 / (1 + exp(rate)). Both are drawn exactly, so the chance of a cell is a known number.
Only cells that are kept take memory.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.mechanism.noise.noise_source import NoiseSource

Cells = NDArray[np.int64]
"""Cell numbers, ascending, each at most once."""

SMALLEST_SKIP = 2.0**-12
FIRST_RATE = 2.0**-10
FIRST_CHANCE = -math.expm1(-FIRST_RATE)
ROUND_UP = 1 + 2.0**-40
"""Factor by which chances are rounded up: more than all rounding errors in this module."""

MAX_CELLS = 60_000_000
"""Most cells to keep, limited by memory."""
MAX_DRAWS = 2_000_000_000
"""Most draws, limited by time: a few minutes on one core."""
DRAWS = 1 << 20
"""Most draws at a time."""


def sample_cells(num_cells: int, *, chance: float, noise: NoiseSource) -> Cells:
    """Choose each of `num_cells` cells independently with the same chance.

    The chance is at least `chance` and at most (1 + 2^-38) `chance`.

    Raises:
        InputError: more than `MAX_CELLS` cells would be chosen, or too many draws needed.
    """
    if not 0 < chance <= 0.5:
        raise ValueError(f"expected a chance above 0 and at most 1/2, got {chance}")
    refuse_many(num_cells, chance=chance)
    skip_rate, keep_rate = sampling_rates(chance)
    chosen = []
    for cells in _skip(num_cells, rate=skip_rate, noise=noise):
        if keep_rate is not None:
            cells = cells[biased_coins(len(cells), rate=keep_rate, noise=noise)]
        chosen.append(cells)
    return np.concatenate(chosen)


def sampling_rates(chance: float) -> tuple[float, float | None]:
    """Return two rates that choose a cell with (1 - exp(-first)) / (1 + exp(second)) exactly.

    If the second rate is None, the divisor is 1.
    """
    if chance >= SMALLEST_SKIP:
        return -math.log1p(-chance) * ROUND_UP, None
    return FIRST_RATE, math.log(FIRST_CHANCE / chance - 1) - 2.0**-40


def refuse_many(num_cells: int, *, chance: float) -> None:
    """Refuse sizes that would take too much memory or time, in expectation.

    Raises:
        InputError: more than `MAX_CELLS` cells would be chosen, or more than `MAX_DRAWS` drawn.
    """
    if num_cells * chance > MAX_CELLS:
        raise InputError(
            f"a graph of noisy edges: expected at most {MAX_CELLS:,} noisy cells, got about "
            f"{num_cells * chance:,.0f} of {num_cells:,} pairs of nodes; use a larger epsilon or "
            f"a method that does not perturb every pair of nodes"
        )
    draws = num_cells * max(chance, FIRST_CHANCE)
    if chance < SMALLEST_SKIP and draws > MAX_DRAWS:
        raise InputError(
            f"a graph of noisy edges: expected pairs of nodes that take at most {MAX_DRAWS:,} "
            f"draws, got {num_cells:,} pairs, which take about {draws:,.0f}; use a method that "
            f"does not perturb every pair of nodes"
        )


def draw_geometric(count: int, *, rate: float, noise: NoiseSource) -> NDArray[np.int64]:
    """Draw integers k >= 0 with P(k) = (1 - exp(-rate)) exp(-rate k), exactly."""
    accepted: list[NDArray[np.int64]] = []
    missing = count
    while missing > 0:
        draws = np.zeros(missing + missing // 2 + 8, dtype=np.int32)
        noise.add_laplace_to(draws, epsilon=rate)
        accepted.append(draws[draws >= 0][:missing].astype(np.int64))
        missing -= len(accepted[-1])
    return np.concatenate(accepted) if accepted else np.zeros(0, dtype=np.int64)


def biased_coins(count: int, *, rate: float, noise: NoiseSource) -> NDArray[np.bool_]:
    """Draw `count` booleans that are True with chance 1 / (1 + exp(rate)), exactly."""
    draws = np.zeros(count, dtype=np.int32)
    noise.add_laplace_to(draws, epsilon=rate)
    return draws >= 1


def subsampling_chance(subsampling_rate: float | None) -> float:
    """Chance that `biased_coins` gives True at this rate; 1 if nothing is drawn."""
    return 1.0 if subsampling_rate is None else 1 / (1 + math.exp(subsampling_rate))


def _skip(num_cells: int, *, rate: float, noise: NoiseSource) -> Iterator[Cells]:
    """Walk through the cells in random jumps; each is hit with chance 1 - exp(-rate)."""
    last = -1
    while last < num_cells:
        ahead = min(int((num_cells - last) * rate) + 8, DRAWS)
        places = last + np.cumsum(draw_geometric(ahead, rate=rate, noise=noise) + 1)  # (ahead,)
        yield places[places < num_cells]
        last = int(places[-1])
