"""How much of the labels is explained by sums that training nodes received, beyond chance.

    rest    = labels - what the nodes' own features explain of them, each node left out
    share   = adjusted R^2 of the rest by the sums;                      0 on average for noise
    gain    = (1 + 1/s) s' / (s' + 1)       factor on the share with less noise: s, s' are signal
                                            over noise in the probe and in the hop

If only a few of many columns explain anything, a regression on all of them also fits chance in the
others; for nodes that were not fitted this costs width / N of what they receive. So columns may be
selected, by their own statistic:

    stat[j]    = dof N sum over classes of corr(column j, rest)^2 / unevenness[j]
                                                                       chi^2 of `dof` under chance
    threshold  = dof + 2 sqrt(dof log width) + 2 log width             hardly ever reached by chance
    penalty    = selected (threshold - dof) / (dof N)    what selecting them adds to an adjusted R^2

They are selected if what they explain, less the penalty, is further beyond chance than what all
columns explain, and if more of it is left for other nodes.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

TAIL_QUANTILES = (0.01, 0.99)
"""Quantiles at which sums are cut: hubs would outweigh all others."""
QUARTILES = 1.349
"""Distance between the quartiles of a normal distribution of standard deviation 1."""
MIN_SIGNAL = 0.01
"""Smallest variance of a signal, as a multiple of the variance of the noise."""
OWN_RIDGE = 10.0
RIDGE = 1e-3

FloatRows = NDArray[np.float32]
Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplainedShare:
    """Share of the labels that sums explain, beyond what as many random numbers would."""

    share: float
    null_std: float
    """Standard deviation of the share where nothing is explained."""
    error: float
    """Standard error of the share."""
    coefficients: Doubles  # (width, num_classes)
    signal: float
    """Variance of a column without noise, over the variance of the noise."""

    @property
    def z_score(self) -> float:
        """The share in standard deviations of chance."""
        return self.share / self.null_std

    def reduced_by(self, penalty: float) -> "ExplainedShare":
        """Return the same with a share that is smaller by `penalty`."""
        return replace(self, share=self.share - penalty)

    @property
    def signal_fraction(self) -> float:
        """Fraction of what it would explain without noise that is left with this noise."""
        return 1 / (1 + 1 / self.signal)

    @property
    def without_noise(self) -> float:
        """The share that it would explain without noise."""
        return self.share / self.signal_fraction

    def gain(self, times: float) -> float:
        """Return the factor on the share if the signal were this many times as strong."""
        if math.isinf(self.signal):
            return 1.0 if times > 0 else 0.0
        signal = times * self.signal
        return (1 + 1 / self.signal) * signal / (signal + 1)


def explained_share(residuals: Doubles, sums: Doubles, *, noise_std: float) -> ExplainedShare:
    """Regress (num_train, num_classes) residuals on (num_train, width) sums with this noise."""
    num_train, width = sums.shape
    dof = degrees_of_freedom(residuals)
    signal = _signal(sums, noise_std)
    sums = clip_tails(sums)
    residuals, sums = residuals - residuals.mean(axis=0), sums - sums.mean(axis=0)
    size = sums.std(axis=0) + 1e-9
    sums = sums / size
    uneven = float(unevenness(residuals, sums).mean())
    gram = sums.T @ sums / num_train + RIDGE * np.eye(width)
    coefficients = np.linalg.solve(gram, sums.T @ residuals / num_train)
    total = float(np.square(residuals).sum())
    left = float(np.square(residuals - sums @ coefficients).sum()) / total if total > 0 else 1.0
    spare = max(num_train - width - 1, 1)
    share = 1 - left * (num_train - 1) / spare if total > 0 else 0.0
    share -= (uneven - 1) * width / num_train
    return ExplainedShare(
        share=share,
        null_std=uneven * math.sqrt(2 * width / (dof * spare * (num_train + 1))),
        error=math.sqrt((2 * width * uneven**2 + 4 * num_train * max(share, 0.0)) / dof)
        / num_train,
        coefficients=coefficients / size[:, None],
        signal=signal,
    )


def clip_tails(sums: Doubles) -> Doubles:
    """Cut the tails of every column: hubs would outweigh all others."""
    return np.clip(sums, *np.quantile(sums, TAIL_QUANTILES, axis=0))


def degrees_of_freedom(residuals: Doubles) -> float:
    """Return how many columns are free to differ: (tr S)^2 / tr S^2, S their covariance.

    It is one less than the number of classes if all are equally frequent, and about 1 if most nodes
    belong to two classes.

    >>> even, two = np.tile(np.eye(4), (9, 1)), np.repeat(np.eye(4), [50, 50, 1, 1], axis=0)
    >>> [round(degrees_of_freedom(rest), 1) for rest in (even, two)]
    [3.0, 1.1]
    """
    residuals = residuals - residuals.mean(axis=0)
    covariance = residuals.T @ residuals
    square = float(np.square(covariance).sum())
    return max(float(np.trace(covariance)) ** 2 / square, 1.0) if square > 0 else 1.0


def unevenness(residuals: Doubles, sums: Doubles) -> Doubles:
    """Return how much more a column explains by chance than if sums were independent of residuals.

    E[h^2 r^2] / (E[h^2] E[r^2])       above 1 where nodes with large sums are harder to explain

    Both h and r are centred; the result is (width,), at least 1. Sums over many neighbours are
    large and, where labels follow the degree, so are the residuals of the same nodes.
    """
    weights = np.square(residuals).sum(axis=1)  # (num_train,)
    squares = np.square(sums)
    variance = squares.mean(axis=0) * weights.mean()
    covariance = (weights @ squares) / len(weights)
    return np.maximum(np.where(variance > 0, covariance / np.maximum(variance, 1e-300), 1.0), 1.0)


def _signal(sums: Doubles, noise_std: float) -> float:
    """Signal over noise of a typical node, from quartiles, which hubs do not move."""
    if noise_std == 0:
        return math.inf
    low, high = np.quantile(sums, (0.25, 0.75), axis=0)
    variance = np.square((high - low) / QUARTILES).mean() / noise_std**2
    return max(float(variance) - 1, MIN_SIGNAL)


def residual_labels(labels: FloatRows, own: FloatRows) -> Doubles:
    """Return what a node's own features do not explain of its label, leave-one-out.

    Args:
        labels: (num_train, num_classes).
        own: (num_train, width).
    """
    known = np.column_stack([np.ones(len(own)), own]).astype(np.float64)
    gram = known.T @ known + OWN_RIDGE * np.eye(known.shape[1])
    hat = np.linalg.solve(gram, known.T)  # (width + 1, num_train)
    weight = np.einsum("ij,ji->i", known, hat)  # of each node in its own prediction
    residuals: Doubles = (labels - known @ (hat @ labels)) / (1 - weight)[:, None]
    return residuals


ColumnMask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, kw_only=True)
class SelectedColumns:
    """Columns, how much they explain, and how much of that is due to the selection itself."""

    columns: ColumnMask  # (width,)
    explained: ExplainedShare
    penalty: float

    def share_for_other_nodes(self, num_train: int) -> float:
        """Return the share that is left for nodes that were not fitted."""
        return self.explained.share + self.penalty - int(self.columns.sum()) / num_train

    @property
    def coefficients(self) -> Doubles:
        """Coefficients (width, num_classes); zero for columns that were left out."""
        coefficients_of_selected = self.explained.coefficients
        all_columns = np.zeros((len(self.columns), coefficients_of_selected.shape[1]))
        all_columns[self.columns] = coefficients_of_selected
        return all_columns


def select_columns(residuals: Doubles, sums: Doubles, *, noise_std: float) -> SelectedColumns:
    """Select columns: all of them, or those that explain something on their own.

    Args:
        residuals: (num_train, num_classes), to be explained.
        sums: (num_train, width).
        noise_std: noise in the sums.
    """
    all_columns = SelectedColumns(
        columns=np.ones(sums.shape[1], dtype=np.bool_),
        explained=explained_share(residuals, sums, noise_std=noise_std),
        penalty=0.0,
    )
    dof = degrees_of_freedom(residuals)
    least = selection_threshold(sums.shape[1], dof=dof)
    columns = column_statistics(residuals, sums) > least
    if not columns.any() or columns.all():
        return all_columns
    penalty = int(columns.sum()) * (least - dof) / (dof * len(residuals))
    share_of_selected = explained_share(
        residuals, sums[:, columns], noise_std=noise_std
    ).reduced_by(penalty)
    selected = SelectedColumns(columns=columns, explained=share_of_selected, penalty=penalty)
    is_clearer = share_of_selected.z_score > all_columns.explained.z_score
    return (
        selected
        if is_clearer
        and selected.share_for_other_nodes(len(residuals))
        > all_columns.share_for_other_nodes(len(residuals))
        else all_columns
    )


def column_statistics(residuals: Doubles, sums: Doubles) -> Doubles:
    """Return the statistic of each column on its own: (width,)."""
    sums = clip_tails(sums)
    residuals, sums = residuals - residuals.mean(axis=0), sums - sums.mean(axis=0)
    covariance = np.square(sums.T @ residuals).sum(axis=1)
    variance = np.square(sums).sum(axis=0) * np.square(residuals).sum()
    scale = degrees_of_freedom(residuals) * len(residuals)
    return np.asarray(
        scale * covariance / np.maximum(variance, 1e-300) / unevenness(residuals, sums)
    )


def selection_threshold(width: int, *, dof: float) -> float:
    """Return a statistic that hardly any of `width` columns reaches by chance.

    >>> [round(selection_threshold(width, dof=1), 1) for width in (1, 16, 64)]
    [1.0, 9.9, 13.4]
    """
    log = math.log(width)
    return dof + 2 * math.sqrt(dof * log) + 2 * log
