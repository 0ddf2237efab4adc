"""Processes that train one model together, started by `torchrun`; or a single process.

    torchrun --nproc-per-node 2 -m vesper learn ...      sets RANK, WORLD_SIZE, LOCAL_RANK

All processes go through the same batches, and each takes its share of every batch. PyTorch's
DistributedDataParallel averages the gradients over gloo.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.parallel import DistributedDataParallel


@dataclass(frozen=True)
class Ranks:
    """Rank of this process among all, and among those on its machine."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0

    @property
    def is_first(self) -> bool:
        """Whether this process writes the result of all."""
        return self.rank == 0

    @property
    def is_first_here(self) -> bool:
        """Whether this process writes files for all processes on its machine."""
        return self.local_rank == 0

    def share_of(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Every `world`-th row, starting at this rank."""
        return rows[self.rank :: self.world]

    def data_parallel(self, module: nn.Module) -> nn.Module:
        """Wrap the module so that gradients are averaged over all processes."""
        return module if self.world == 1 else DistributedDataParallel(module)

    def broadcast_from_first(self, value: Any) -> Any:
        """Return the value of the first process, in every process."""
        if self.world == 1:
            return value
        box = [value]
        torch.distributed.broadcast_object_list(box, src=0)
        return box[0]

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all processes by rank, in every process."""
        if self.world == 1:
            return [value]
        boxes: list[Any] = [None] * self.world
        torch.distributed.all_gather_object(boxes, value)
        return boxes

    def wait(self) -> None:
        """Wait until all processes get here."""
        if self.world > 1:
            torch.distributed.barrier()


@contextmanager
def ranks() -> Iterator[Ranks]:
    """Join the other processes, if this one was started with some."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Ranks()
        return
    torch.distributed.init_process_group("gloo")
    try:
        yield Ranks(int(os.environ["RANK"]), world, int(os.environ.get("LOCAL_RANK", "0")))
    finally:
        torch.distributed.destroy_process_group()
