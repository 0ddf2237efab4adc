"""Noise: AES-CTR bits turned into draws from exact laws.

In reading order:

    noise_source        where bits come from: the operating system, or a seed for simulations
    span                the bits of one release: entry k always gets the same noise
    exact_law           draws from any integer law, exact whatever the precision of its table
    rounded_gaussian    the law of release noise
    discrete_laplace    the law of noisy counts
    noise_kernels       the compiled loop
"""

from vesper.mechanism.noise.noise_source import NoiseSource

__all__ = [
    "NoiseSource",
]
