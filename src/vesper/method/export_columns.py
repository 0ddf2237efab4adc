"""Columns of a table that leaves the data party: released sums and logits, with or without labels.

hop1_degree = first coordinate of the sum / degree_share      a noisy degree (share on the grid)
hop1_0, ..  = the other coordinates
stage1_0, .. = logits, classes in ascending order

Without any label, what neighbours' features look like, hop by hop:

own   = leading principal components of the edge-free features
hop 1 = door.release((c, sqrt(1 - c^2) unit(own - mean)))
hop k = door.release((c, sqrt(1 - c^2) unit(s - mean)))       s: the sums of hop k - 1

Messages depend on edge-free data and earlier releases only.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from vesper.graph.features import Features
from vesper.mechanism.aggregations import STEPS
from vesper.mechanism.door import Door
from vesper.model.message_rows import class_messages
from vesper.model.principal_components import principal_components

ExportColumns = dict[str, NDArray[np.float32]]
"""Columns by name, (num_nodes,) each."""


def columns_of(name: str, values: NDArray[np.float32]) -> ExportColumns:
    """Name the columns of (num_nodes, width) values by position."""
    return {f"{name}_{k}": values[:, k] for k in range(values.shape[1])}


def columns_of_sums(
    hop: int, released: NDArray[np.float32], *, degree_share: float | None
) -> ExportColumns:
    """Name the columns of a release, (num_nodes, message_width); the first sums the constant.

    | degree_share | degree column |
    | --- | --- |
    | 0: the constant was 0, and its sum is only noise | left out |
    | None: the sum of the constant is no degree | a column like the others |
    """
    if degree_share is None:
        return columns_of(f"hop{hop}", released)
    named = columns_of(f"hop{hop}", released[:, 1:])
    if degree_share == 0:
        return named
    constant_on_grid = math.floor(degree_share * STEPS) / STEPS  # messages are rounded to the grid
    return {f"hop{hop}_degree": released[:, 0] / np.float32(constant_on_grid), **named}


MESSAGE_WIDTH = 15
"""Components; with the constant a message has 16 coordinates."""

DEFAULT_DEGREE_SHARE = 0.7
"""Default: degree and components get half of a message's squared norm each."""


def label_free_columns(
    features: Features, door: Door, *, noise_stds: Sequence[float], degree_share: float | None
) -> ExportColumns:
    """Release one hop per noise_std; return components and sums of all nodes as columns."""
    degree_share = DEFAULT_DEGREE_SHARE if degree_share is None else degree_share
    # (num_nodes, <= 15)
    rows: NDArray[np.float32] = principal_components(features, width=MESSAGE_WIDTH)
    columns = columns_of("own", rows)
    for hop, noise_std in enumerate(noise_stds, start=1):
        messages = class_messages(torch.from_numpy(rows), degree_share=degree_share).numpy()
        released = door.release(messages, noise_std=noise_std)  # (num_nodes, <= 16)
        columns |= columns_of_sums(hop, released, degree_share=degree_share)
        rows = released[:, 1:]
    return columns
