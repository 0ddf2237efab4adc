"""Noise."""

from vesper.mechanism.noise.noise_source import NoiseSource

__all__ = [
    "NoiseSource",
]
