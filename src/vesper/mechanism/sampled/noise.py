"""Noise of plans that certify nothing: float Gaussians from a seed, for simulation.

    perturbed = rows + N(0, noise_std^2 I)

What a certified plan releases is noised elsewhere, exactly (`mechanism.noise`).
"""

import torch
from torch import Tensor

from vesper.privacy.expect import expect_positive


class LayerNoise:
    """Gaussian noise; there is none of size 0, whoever wants no noise has no `LayerNoise`.

    Args:
        noise_std: above 0 and finite.
        seed: of the noise.
    """

    def __init__(self, *, noise_std: float, seed: int) -> None:
        expect_positive("noise_std", noise_std)
        self.noise_std = noise_std
        self.generator = torch.Generator().manual_seed(seed)

    def perturb(self, rows: Tensor) -> Tensor:
        """Add fresh noise to every entry; gradients pass unchanged."""
        noise = torch.empty_like(rows, requires_grad=False)
        return rows + noise.normal_(0.0, self.noise_std, generator=self.generator)
