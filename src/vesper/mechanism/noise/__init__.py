"""Noise: AES-CTR bits turned into draws from exact laws.

In reading order:

    noise_source        where bits come from, and the bits of one release
    exact_law           draws from any integer law, exact whatever the precision of its table
    rounded_gaussian    the law of release noise
    discrete_laplace    the law of noisy counts
"""

from vesper.mechanism.noise.noise_source import NoiseSource

__all__ = [
    "NoiseSource",
]
