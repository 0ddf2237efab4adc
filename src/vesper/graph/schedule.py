"""Training schedules: the roots of each batch, and how often each node takes part.

| schedule | a batch is | a node takes part |
| --- | --- | --- |
| `ShuffledEpochs` | the next slice of a permutation, fresh each epoch | num_epochs times |
| `IndependentDraws` | a fresh uniform subset of the nodes | a random but public number of times |

Public by design: a schedule is a function of its node numbers and settings, all known to both
parties, and never of an edge. No function here takes a graph, so none can depend on one.

Batch k is a function of (settings, k): a resumed run computes it without replaying earlier batches.
The random stream is NumPy's, which may change between versions; parties that both compute a
schedule must compare digests of the roots.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError, first_three


class Schedule(Protocol):
    """Interface of all schedules."""

    def __len__(self) -> int:
        """Number of batches."""

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        """All batches in order."""

    def batch(self, step: int) -> NDArray[np.int64]:
        """The distinct roots of batch `step`, from 0 to len(self) - 1."""

    def participation(self) -> NDArray[np.int64]:
        """How often each of the given nodes takes part, counted over all batches."""


@dataclass(frozen=True, eq=False)
class ShuffledEpochs:
    """Each node once per epoch, in a fresh order; the last batch of an epoch may be smaller.

        participation of every node = num_epochs

    Args:
        nodes: (num_train_nodes,) distinct node numbers.
        batch_size: roots per batch.
        num_epochs: number of passes over all nodes.
        seed: seed of the shuffles.

    >>> schedule = ShuffledEpochs(np.array([3, 5, 8]), batch_size=2, num_epochs=4, seed=0)
    >>> [len(roots) for roots in schedule]
    [2, 1, 2, 1, 2, 1, 2, 1]
    >>> schedule.participation().tolist()
    [4, 4, 4]
    """

    nodes: NDArray[np.int64]
    _: KW_ONLY
    batch_size: int
    num_epochs: int
    seed: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", _frozen(self.nodes))
        _expect_at_least("batch_size", self.batch_size, 1)
        _expect_at_least("num_epochs", self.num_epochs, 0)
        _expect_at_least("seed", self.seed, 0)

    @property
    def batches_an_epoch(self) -> int:
        """Number of batches per epoch."""
        return -(-len(self.nodes) // self.batch_size)

    def __len__(self) -> int:
        return self.num_epochs * self.batches_an_epoch

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        return (self.batch(step) for step in range(len(self)))

    def batch(self, step: int) -> NDArray[np.int64]:
        """Return the roots of batch `step`: (batch_size,), or fewer at the end of an epoch."""
        _expect_step(step, len(self))
        epoch, k = divmod(step, self.batches_an_epoch)
        order = _shuffled(len(self.nodes), self.seed, epoch)  # (num_train_nodes,)
        return self.nodes[order[k * self.batch_size : (k + 1) * self.batch_size]]

    def participation(self) -> NDArray[np.int64]:
        """Return how often each node takes part, (num_train_nodes,): always num_epochs."""
        return np.full(len(self.nodes), self.num_epochs, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class IndependentDraws:
    """Each batch is an independent uniform draw of batch_size distinct nodes.

        participation of node v = number of steps whose draw contains v, about
                                  num_steps * batch_size / num_train_nodes, known exactly after
                                  replaying the public draws

    Args:
        nodes: (num_train_nodes,) distinct node numbers.
        batch_size: roots per batch, at most num_train_nodes.
        num_steps: number of batches.
        seed: seed of the draws.

    >>> schedule = IndependentDraws(np.array([3, 5, 8]), batch_size=2, num_steps=4, seed=0)
    >>> [len(set(roots.tolist())) for roots in schedule]
    [2, 2, 2, 2]
    >>> int(schedule.participation().sum())
    8
    """

    nodes: NDArray[np.int64]
    _: KW_ONLY
    batch_size: int
    num_steps: int
    seed: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", _frozen(self.nodes))
        _expect_at_least("batch_size", self.batch_size, 1)
        _expect_at_least("num_steps", self.num_steps, 0)
        _expect_at_least("seed", self.seed, 0)
        if self.batch_size > len(self.nodes):
            raise InputError(
                f"batch_size: expected at most the number of nodes, {len(self.nodes)}, "
                f"got {self.batch_size}; a draw has no repeats"
            )

    def __len__(self) -> int:
        return self.num_steps

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        return (self.batch(step) for step in range(len(self)))

    def batch(self, step: int) -> NDArray[np.int64]:
        """Return the (batch_size,) roots of batch `step`."""
        _expect_step(step, len(self))
        return self.nodes[self._positions(step)]

    def participation(self) -> NDArray[np.int64]:
        """Return how often each node takes part, (num_train_nodes,), by replaying all draws."""
        times = np.zeros(len(self.nodes), dtype=np.int64)
        for step in range(len(self)):
            times[self._positions(step)] += 1  # no repeats within a draw
        return times

    def _positions(self, step: int) -> NDArray[np.int64]:
        generator = _generator(self.seed, step)
        return generator.choice(len(self.nodes), size=self.batch_size, replace=False)


def _generator(seed: int, index: int) -> np.random.Generator:
    """Return the stream of one epoch or step; children of a seed sequence are independent."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(index,))))


@lru_cache(maxsize=1)
def _shuffled(num_nodes: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """Return the order of one epoch; the most recent one is cached."""
    return _generator(seed, epoch).permutation(num_nodes)


def _frozen(nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a read-only copy of distinct node numbers."""
    given = np.asarray(nodes)
    if given.ndim != 1 or (given.size and not np.issubdtype(given.dtype, np.integer)):
        raise InputError(
            f"nodes: expected a one-dimensional integer array, got {given.dtype} of shape "
            f"{given.shape}"
        )
    values, counts = np.unique(given, return_counts=True)
    for what, offenders in (("negative", values[values < 0]), ("repeated", values[counts > 1])):
        if len(offenders):
            raise InputError(
                f"nodes: expected distinct node numbers, got {len(offenders)} {what} "
                f"({first_three(offenders)})"
            )
    copy = np.array(given, dtype=np.int64)
    copy.setflags(write=False)
    return copy


def _expect_at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise InputError(f"{name}: expected at least {least}, got {value}")


def _expect_step(step: int, num_steps: int) -> None:
    if not 0 <= step < num_steps:
        raise InputError(f"step: expected one of {num_steps} batches, counted from 0, got {step}")
