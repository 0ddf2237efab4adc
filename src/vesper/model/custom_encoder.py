"""Wrapper of a user's encoder: its weights are left as they are, and its random draws repeat.

    forward:  whatever the module draws from torch's global generator comes from its own generator

Weights of our own modules are drawn from the seed (`initialize`); those of a user's module may be
pretrained or frozen, or have shapes and meanings that are unknown to us.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class CustomEncoder(nn.Module):
    """A module from (B, num_inputs) to (B, width), with its own random generator.

    Args:
        make: creates the module; its draws from torch's global generator follow from the seed.
        seed: seed of the weights and masks that are drawn there.
    """

    def __init__(self, make: Callable[[], nn.Module], *, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)
        with self._own_generator():
            self.module = make()

    def forward(self, inputs: Tensor) -> Tensor:
        """Encode, and leave the state of the global generator unchanged."""
        with self._own_generator():
            encodings: Tensor = self.module(inputs)
        return encodings

    @contextmanager
    def _own_generator(self) -> Iterator[None]:
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self.generator.get_state())
            yield
            self.generator.set_state(torch.get_rng_state())
