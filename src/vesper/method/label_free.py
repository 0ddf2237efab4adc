"""Released features without any label: what neighbours' features look like, hop by hop.

    own   = leading principal components of the edge-free features
    hop 1 = door.release((c, sqrt(1 - c^2) unit(own - mean)))
    hop k = door.release((c, sqrt(1 - c^2) unit(s - mean)))       s: the sums of hop k - 1

Messages depend on edge-free data and earlier releases only.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.method.columns import Columns, columns_of, columns_of_sums
from vesper.model.messages import messages_of
from vesper.model.projection import project

MESSAGE_WIDTH = 15
"""Components; with the constant a message has 16 coordinates."""

DEGREE_SHARE = 0.7
"""When none is given: degree and components get half of a message's squared norm each."""


def label_free_columns(
    features: Features, door: Door, *, noise_stds: Sequence[float], degree_share: float | None
) -> Columns:
    """Release one hop a noise; give own components and sums of all nodes."""
    degree_share = DEGREE_SHARE if degree_share is None else degree_share
    said: NDArray[np.float32] = project(features, width=MESSAGE_WIDTH)  # (num_nodes, <= 15)
    columns = columns_of("own", said)
    for hop, noise_std in enumerate(noise_stds, start=1):
        messages = messages_of(torch.from_numpy(said), degree_share=degree_share).numpy()
        released = door.release(messages, noise_std=noise_std)  # (num_nodes, <= 16)
        columns |= columns_of_sums(hop, released, degree_share=degree_share)
        said = released[:, 1:]
    return columns
