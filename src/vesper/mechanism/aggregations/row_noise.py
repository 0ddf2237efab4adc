"""The last step before aggregated rows may leave: clipping if required, noise, units.

    released[k] = (clip(values[k]) + K_k) / steps,      K_k = round(scale N(0, I))

The noise of a row depends only on the bits of the release and on the position of the row, so rows
may be finished in any parts, anywhere, in any order.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.mechanism.aggregations.clipped_sum import clip_on_grid
from vesper.mechanism.aggregations.grid import from_grid
from vesper.mechanism.noise.span import NoiseSpan


@dataclass(frozen=True, kw_only=True)
class RowNoise:
    """Noise and clipping of the rows of one release.

    Args:
        bits: fresh bits for all entries of the release.
        scale: standard deviation of the noise, in grid steps.
        steps: grid steps per unit.
        row_norm: norm, in units, that rows are clipped to; None: no clipping.
    """

    bits: NoiseSpan
    scale: float
    steps: int
    row_norm: float | None = None

    def finish_rows(self, values: NDArray[np.int32], *, first_row: int = 0) -> NDArray[np.float32]:
        """Finish rows first_row, first_row + 1, .. of the release, in the same memory."""
        if self.row_norm is not None:
            clip_on_grid(values, row_norm=self.row_norm)
        self.bits.add_gaussian_to(values, scale=self.scale, first=first_row * values.shape[1])
        return from_grid(values, steps=self.steps)
