"""Do speakers know one another through others only? What the poll and degrees of the trial say.

share   = ends of edges at speakers / all ends
fair    = MIXED share degree           of the speakers that a speaker would hear, if everybody
apart   where  fair > CLEAR errors     knew anybody
        and    fair - heard > error
"""

import math

import numpy as np
from numpy.typing import NDArray

from vesper.party.representation import Nodes

MIXED = 0.7
"""Who hears fewer than so many of the speakers that it would hear by chance is kept apart."""
CLEAR = 1.5
"""Errors that these are at least, so that an error alone hardly passes for it."""


def kept_apart(
    heard: NDArray[np.float32], speakers: Nodes, *, lengths: tuple[float, float], noise_std: float
) -> bool:
    """Whether speakers have neighbours, and hardly a speaker among them.

    Args:
        heard: (num_nodes, 2) sums over neighbours: those that speak, all.
        speakers: who speaks.
        lengths: with which either was said.
        noise_std: in the sums.

    >>> pairs = np.array([[1, 1], [1, 1], [0, 1], [0, 1]], "f4")  # two speakers, who are neighbours
    >>> kept_apart(pairs, np.array([0, 1]), lengths=(1, 1), noise_std=0.0)
    False
    >>> shops = np.zeros((200, 2), "f4")  # a hundred speakers have seven neighbours each
    >>> shops[:100], shops[100:] = (0, 7), (7, 7)
    >>> kept_apart(shops, np.arange(100), lengths=(1, 1), noise_std=0.0)
    True
    >>> kept_apart(shops, np.arange(100), lengths=(1, 1), noise_std=20.0)
    False
    """
    ours = heard[speakers].mean(axis=0, dtype=np.float64)  # (2,)
    speaking, degree = float(ours[0]) / lengths[0], float(ours[1]) / lengths[1]
    all_ends = float(heard[:, 1].sum(dtype=np.float64)) / lengths[1]
    share = min(max(len(speakers) * degree / max(all_ends, 1e-6), 0.0), 1.0)
    noise = math.hypot(1 / lengths[0], MIXED * share / lengths[1]) * noise_std
    by_chance = 2 * share * max(degree, 0.0)  # variance of the speakers that a node knows
    error = math.sqrt((noise**2 + by_chance) / len(speakers))
    fair = MIXED * share * degree
    return fair > CLEAR * error and fair - speaking > error
