"""How much of labels is explained by something that training nodes heard.

rest   = labels - what training nodes know of themselves explains of them, each left out
share  = adjusted R^2 of the rest by what was heard; 0 on average for noise
share(s) = share(inf) s / (s + 1)             s: signal over noise, so that less noise can be
reckoned with before it is paid for

Which columns of what was heard tell anything, where only a few of many do.

    stat[j]  = free N sum over classes of corr(column j, rest)^2 / unevenness[j]
                                                                     chi^2 of `free` under chance
    least    = free + 2 sqrt(free log width) + 2 log width           hardly ever reached by chance
    charge   = chosen (least - free) / (free N)      what choosing them adds to an adjusted R^2

A regression on all columns follows chance in each of them, which costs others, for whom nothing
was fitted, width / N of what they are told. Columns that tell by themselves are taken where what
they explain, less that charge, is further beyond chance, and more of it is left for others.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

TAILS = (0.01, 0.99)
"""Quantiles to which what was heard is cut: hubs would outweigh all others."""
QUARTILES = 1.349
"""Between the quartiles of a normal distribution of deviation 1."""
FAINTEST = 0.01
"""Of the noise: variance that a signal has at least."""
OWN_RIDGE = 10.0
RIDGE = 1e-3

Rows = NDArray[np.float32]
Exact = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Explained:
    """How much of labels something explains, beyond what as many random numbers would."""

    share: float
    chance: float
    """Deviation of the share where there is nothing to explain."""
    error: float
    coefficients: Exact  # (width, num_classes)
    signal: float
    """Variance of a column that is not noise, over that of the noise."""

    @property
    def beyond_chance(self) -> float:
        """The share in deviations of chance."""
        return self.share / self.chance

    def less(self, charge: float) -> "Explained":
        """The same with a smaller share."""
        return replace(self, share=self.share - charge)

    @property
    def heard(self) -> float:
        """The part of what it would explain without noise that is left in this noise."""
        return 1 / (1 + 1 / self.signal)

    @property
    def without_noise(self) -> float:
        """The share that it would explain without noise."""
        return self.share / self.heard

    def beside(self, other: "Explained", both: "Explained") -> "Explained":
        """What it explains that another does not, from what both explain together."""
        share = both.share - other.share
        return replace(self, share=share, chance=both.chance, error=both.error)

    def with_less_noise(self, times: float, *, doubt: float) -> float:
        """What it would explain with a signal this many times as strong.

        share(s) = share(inf) s / (s + 1)                              s: signal over noise
        """
        share = max(self.share + doubt * self.chance, 0.0)
        if math.isinf(self.signal):
            return min(share, 1.0) if times > 0 else 0.0
        most = min(share * (1 + 1 / self.signal), 1.0)
        signal = times * self.signal
        return most * signal / (signal + 1)


def explained(rest: Exact, heard: Exact, *, noise_std: float) -> Explained:
    """Regress: (num_train, num_classes) on (num_train, width), in which there is this noise."""
    num_train, width = heard.shape
    free = degrees_of_freedom(rest)
    signal = _signal(heard, noise_std)
    heard = cut(heard)
    rest, heard = rest - rest.mean(axis=0), heard - heard.mean(axis=0)
    size = heard.std(axis=0) + 1e-9
    heard = heard / size
    uneven = float(unevenness(rest, heard).mean())
    gram = heard.T @ heard / num_train + RIDGE * np.eye(width)
    coefficients = np.linalg.solve(gram, heard.T @ rest / num_train)
    total = float(np.square(rest).sum())
    left = float(np.square(rest - heard @ coefficients).sum()) / total if total > 0 else 1.0
    spare = max(num_train - width - 1, 1)
    share = 1 - left * (num_train - 1) / spare if total > 0 else 0.0
    share -= (uneven - 1) * width / num_train
    return Explained(
        share=share,
        chance=uneven * math.sqrt(2 * width / (free * spare * (num_train + 1))),
        error=math.sqrt((2 * width * uneven**2 + 4 * num_train * max(share, 0.0)) / free)
        / num_train,
        coefficients=coefficients / size[:, None],
        signal=signal,
    )


def cut(heard: Exact) -> Exact:
    """Cut the tails of every column: hubs would outweigh all others."""
    return np.clip(heard, *np.quantile(heard, TAILS, axis=0))


def degrees_of_freedom(rest: Exact) -> float:
    """How many columns are free to differ: (tr S)^2 / tr S^2, S their covariance.

    One less than classes where all are as frequent; where most nodes are of two classes, about 1.

    >>> even, two = np.tile(np.eye(4), (9, 1)), np.repeat(np.eye(4), [50, 50, 1, 1], axis=0)
    >>> [round(degrees_of_freedom(rest), 1) for rest in (even, two)]
    [3.0, 1.1]
    """
    rest = rest - rest.mean(axis=0)
    together = rest.T @ rest
    square = float(np.square(together).sum())
    return max(float(np.trace(together)) ** 2 / square, 1.0) if square > 0 else 1.0


def unevenness(rest: Exact, heard: Exact) -> Exact:
    """How much more a column explains by chance than if all nodes heard alike: (width,), from 1 on.

    E[h^2 r^2] / (E[h^2] E[r^2])          above 1 where those that hear more are harder to explain

    Both without their means. Sums over many neighbours are large, and where labels follow the
    degree, so is what is to be explained of the same nodes.
    """
    weights = np.square(rest).sum(axis=1)  # (num_train,)
    squares = np.square(heard)
    apart = squares.mean(axis=0) * weights.mean()
    together = (weights @ squares) / len(weights)
    return np.maximum(np.where(apart > 0, together / np.maximum(apart, 1e-300), 1.0), 1.0)


def _signal(heard: Exact, noise_std: float) -> float:
    """Variance over that of the noise, of a typical node: by quartiles, which hubs do not move."""
    if noise_std == 0:
        return math.inf
    low, high = np.quantile(heard, (0.25, 0.75), axis=0)
    variance = np.square((high - low) / QUARTILES).mean() / noise_std**2
    return max(float(variance) - 1, FAINTEST)


def rest_of(labels: Rows, own: Rows) -> Exact:
    """What of labels is not explained by what nodes know of themselves, each left out for itself.

    Args:
        labels: (num_train, num_classes).
        own: (num_train, width).
    """
    known = np.column_stack([np.ones(len(own)), own]).astype(np.float64)
    gram = known.T @ known + OWN_RIDGE * np.eye(known.shape[1])
    hat = np.linalg.solve(gram, known.T)  # (width + 1, num_train)
    weight = np.einsum("ij,ji->i", known, hat)  # of a node in its own prediction
    rest: Exact = (labels - known @ (hat @ labels)) / (1 - weight)[:, None]
    return rest


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
