"""An encoder that somebody else made: its weights stay as they came, and its draws repeat.

    forward:  what the module draws from torch's global generator comes from one of its own

Weights of our own modules are drawn from the seed (`initialize`); those of another's may have been
trained before, or be frozen, or have shapes and meanings that we do not know.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class CustomEncoder(nn.Module):
    """A module from (B, num_inputs) to (B, width), with a generator of its own.

    Args:
        make: makes the module; what it draws from torch's global generator follows from the seed.
        seed: of weights and masks that are drawn there.
    """

    def __init__(self, make: Callable[[], nn.Module], *, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)
        with self._own_generator():
            self.module = make()

    def forward(self, inputs: Tensor) -> Tensor:
        """Encode; the global generator is afterwards as it was before."""
        with self._own_generator():
            encodings: Tensor = self.module(inputs)
        return encodings

    @contextmanager
    def _own_generator(self) -> Iterator[None]:
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self.generator.get_state())
            yield
            self.generator.set_state(torch.get_rng_state())
