"""Labels as they may be shown: randomised response (claim LABEL-RR).

    seen = true        where U < keep,   U a uniform word of 64 bits, keep rounded down to 2^-64
         = one of the k - 1 others, each with the same chance, elsewhere

The others are drawn by throwing away words beyond the last multiple of k - 1: the same chance for
each, exactly.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.privacy.randomized_response import keep_probability

Labels = NDArray[np.int64]
Rows = NDArray[np.int64]

Words = Callable[[Rows], NDArray[np.uint64]]
"""Rows -> a uniform word of 64 bits for each, independent of all that were given before."""


def respond(labels: Labels, *, epsilon: float, num_classes: int, words: Words) -> Labels:
    """Draw what is shown of each label; (num_labels,).

    Raises:
        InputError: a label that is no class.
    """
    if labels.size and not 0 <= labels.min() <= labels.max() < num_classes:
        raise InputError(
            f"labels: expected classes from 0 to {num_classes - 1}, got {labels.min()} to "
            f"{labels.max()}; leave out nodes without a label"
        )
    keep = Fraction(keep_probability(epsilon=epsilon, num_classes=num_classes))
    everyone = np.arange(len(labels))
    flipped = np.flatnonzero(words(everyone) >= np.uint64(math.floor(keep * 2**64)))
    others = _below(num_classes - 1, flipped, words)  # (num_flipped,)
    seen = labels.copy()
    seen[flipped] = others + (others >= labels[flipped])
    return seen


def _below(bound: int, rows: Rows, words: Words) -> Labels:
    """Draw a whole number from 0 to bound - 1 for each row, each with the same chance."""
    last = np.uint64(2**64 - 1 - 2**64 % bound)
    drawn = words(rows)
    while (beyond := drawn > last).any():
        drawn[beyond] = words(rows[beyond])
    return (drawn % np.uint64(bound)).astype(np.int64)
