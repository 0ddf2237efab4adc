"""A fit leaves torch as it found it.

Numba's pool, where something starts it, sets the number of threads of torch in the whole process,
and weights begin from torch's own generator: neither is the caller's business.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put the number of threads and the state of the generator back, whatever happens."""
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_rng_state(state)
