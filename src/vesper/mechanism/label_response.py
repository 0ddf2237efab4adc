"""Labels as they may be shown: randomised response drawn from the noise source (claim LABEL-RR).

    seen = true        where U < keep,   U a uniform word of 64 bits, keep rounded down to 2^-64
         = one of the k - 1 others, each with the same chance, elsewhere

The others are drawn by throwing away words beyond the last multiple of k - 1: the same chance for
each, exactly.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.mechanism.noise import NoiseSource
from vesper.privacy.randomized_response import keep_probability

Labels = NDArray[np.int64]


def respond(labels: Labels, *, epsilon: float, num_classes: int, noise: NoiseSource) -> Labels:
    """Draw what is shown of each label; (num_labels,).

    Draw once and keep: a second draw for the same labels costs epsilon again.

    Raises:
        InputError: a label that is no class.
    """
    if labels.size and not 0 <= labels.min() <= labels.max() < num_classes:
        raise InputError(
            f"labels: expected classes from 0 to {num_classes - 1}, got {labels.min()} to "
            f"{labels.max()}; leave out nodes without a label"
        )
    keep = Fraction(keep_probability(epsilon=epsilon, num_classes=num_classes))
    flipped = noise.words(len(labels)) >= np.uint64(math.floor(keep * 2**64))  # (num_labels,)
    others = _below(num_classes - 1, int(flipped.sum()), noise)  # (num_flipped,)
    seen = labels.copy()
    seen[flipped] = others + (others >= labels[flipped])
    return seen


def _below(bound: int, count: int, noise: NoiseSource) -> Labels:
    """Draw `count` whole numbers from 0 to bound - 1, each with the same chance."""
    last = np.uint64(2**64 - 1 - 2**64 % bound)
    words = noise.words(count)
    while (beyond := words > last).any():
        words[beyond] = noise.words(int(beyond.sum()))
    return (words % np.uint64(bound)).astype(np.int64)
