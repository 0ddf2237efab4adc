"""Counts, sums and extremes of events by group; an empty group gives 0.

A group is a number from 0 to size - 1, such as the node, or node * 8 + type. Every function maps
(n,) events to (size,) groups.
"""

import numpy as np
from numpy.typing import NDArray

DAY = 86_400

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def signed_log(value: Floats) -> Floats:
    """Return sign(x) log(1 + |x|): close to x near 0, slowly growing, and defined for refunds."""
    return np.asarray(np.sign(value) * np.log1p(np.abs(value)), dtype=np.float64)


def count_by(group: Ints, size: int, weights: Floats | None = None) -> Floats:
    """Count events per group, or sum their weights in the order given."""
    return np.bincount(group, weights=weights, minlength=size).astype(np.float64)


def ratio(part: Floats, whole: Floats) -> Floats:
    """Return part / whole, and 0 where the whole is 0."""
    return np.divide(part, whole, out=np.zeros(np.broadcast(part, whole).shape), where=whole > 0)


def largest_by(group: Ints, size: int, value: Floats) -> Floats:
    """Return the largest value of each group, 0 for an empty group."""
    largest = np.full(size, -np.inf)
    np.maximum.at(largest, group, value)
    return np.where(np.isneginf(largest), 0.0, largest)


def smallest_by(group: Ints, size: int, value: Floats) -> Floats:
    """Return the smallest value of each group, 0 for an empty group."""
    smallest = np.full(size, np.inf)
    np.minimum.at(smallest, group, value)
    return np.where(np.isposinf(smallest), 0.0, smallest)


def spread_by(group: Ints, size: int, value: Floats) -> Floats:
    """Return the standard deviation within each group."""
    count = count_by(group, size)
    mean = ratio(count_by(group, size, value), count)
    return np.sqrt(ratio(count_by(group, size, (value - mean[group]) ** 2), count))


def active_days_by(group: Ints, size: int, seconds: Ints) -> Floats:
    """Count the days on which each group has an event."""
    return count_by(_days(group, seconds)[0], size)


def busiest_day_by(group: Ints, size: int, seconds: Ints) -> Floats:
    """Count the events of each group on its busiest day."""
    owner, events = _days(group, seconds)
    return largest_by(owner, size, events.astype(np.float64))


def _days(group: Ints, seconds: Ints) -> tuple[Ints, Ints]:
    """Return the group of every (group, day) with an event, and its number of events."""
    if not len(group):
        return group, group
    day = seconds // DAY
    day -= day.min()
    span = int(day.max()) + 1
    key, events = np.unique(group * span + day, return_counts=True)
    return key // span, events
