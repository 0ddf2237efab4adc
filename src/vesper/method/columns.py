"""Released sums and logits as named columns, for a table that leaves the data party.

hop1_degree = first coordinate of the sum / degree_share      a noisy degree (share on the grid)
hop1_0, ..  = the other coordinates
stage1_0, .. = logits, classes in ascending order
"""

import math

import numpy as np
from numpy.typing import NDArray

from vesper.mechanism.grid import STEPS

Columns = dict[str, NDArray[np.float32]]
"""(num_nodes,) each."""


def columns_of(name: str, values: NDArray[np.float32]) -> Columns:
    """Name the columns of (num_nodes, width) values by position."""
    return {f"{name}_{k}": values[:, k] for k in range(values.shape[1])}


def columns_of_sums(
    hop: int, released: NDArray[np.float32], *, degree_share: float | None
) -> Columns:
    """Name the columns of a release, (num_nodes, message_width), whose first is the constant's.

    | degree_share | degree column |
    | --- | --- |
    | 0: the constant was 0, its sum is noise only | left out |
    | None: what came of the constant is no degree | one column as the others |
    """
    if degree_share is None:
        return columns_of(f"hop{hop}", released)
    named = columns_of(f"hop{hop}", released[:, 1:])
    if degree_share == 0:
        return named
    said = math.floor(degree_share * STEPS) / STEPS  # what is left of the constant on the grid
    return {f"hop{hop}_degree": released[:, 0] / np.float32(said), **named}
