"""Which columns of what was heard tell anything, where only a few of many do.

    stat[j]  = free N sum over classes of corr(column j, rest)^2 / unevenness[j]
                                                                     chi^2 of `free` under chance
    least    = free + 2 sqrt(free log width) + 2 log width           hardly ever reached by chance
    charge   = chosen (least - free) / (free N)      what choosing them adds to an adjusted R^2

A regression on all columns follows chance in each of them, which costs others, for whom nothing
was fitted, width / N of what they are told. Columns that tell by themselves are taken where what
they explain, less that charge, is further beyond chance, and more of it is left for others.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.method.explained import (
    Exact,
    Explained,
    cut,
    degrees_of_freedom,
    explained,
    unevenness,
)

Columns = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, kw_only=True)
class Telling:
    """Columns, how much they explain, and what having been chosen for it is worth."""

    columns: Columns  # (width,)
    explained: Explained
    charge: float

    def for_others(self, num_train: int) -> float:
        """What is left of the share for nodes for which nothing was fitted."""
        return self.explained.share + self.charge - int(self.columns.sum()) / num_train

    @property
    def coefficients(self) -> Exact:
        """(width, num_classes); zero for columns that were left out."""
        found = self.explained.coefficients
        every = np.zeros((len(self.columns), found.shape[1]))
        every[self.columns] = found
        return every


def telling(rest: Exact, heard: Exact, *, noise_std: float) -> Telling:
    """Choose columns: all of them, or those that tell by themselves.

    Args:
        rest: (num_train, num_classes) what is to be explained.
        heard: (num_train, width).
        noise_std: in what was heard.
    """
    every = Telling(
        columns=np.ones(heard.shape[1], dtype=np.bool_),
        explained=explained(rest, heard, noise_std=noise_std),
        charge=0.0,
    )
    free = degrees_of_freedom(rest)
    least = least_statistic(heard.shape[1], free=free)
    columns = statistics_of(rest, heard) > least
    if not columns.any() or columns.all():
        return every
    charge = int(columns.sum()) * (least - free) / (free * len(rest))
    found = explained(rest, heard[:, columns], noise_std=noise_std).less(charge)
    some = Telling(columns=columns, explained=found, charge=charge)
    surer = found.beyond_chance > every.explained.beyond_chance
    return some if surer and some.for_others(len(rest)) > every.for_others(len(rest)) else every


def statistics_of(rest: Exact, heard: Exact) -> Exact:
    """Of each column by itself: (width,)."""
    heard = cut(heard)
    rest, heard = rest - rest.mean(axis=0), heard - heard.mean(axis=0)
    together = np.square(heard.T @ rest).sum(axis=1)
    apart = np.square(heard).sum(axis=0) * np.square(rest).sum()
    scale = degrees_of_freedom(rest) * len(rest)
    return np.asarray(scale * together / np.maximum(apart, 1e-300) / unevenness(rest, heard))


def least_statistic(width: int, *, free: float) -> float:
    """What none of `width` columns reaches by chance, but for a few times in a hundred.

    >>> [round(least_statistic(width, free=1), 1) for width in (1, 16, 64)]
    [1.0, 9.9, 13.4]
    """
    log = math.log(width)
    return free + 2 * math.sqrt(free * log) + 2 * log
