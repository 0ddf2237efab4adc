"""Processes that train one model together, as `torchrun` starts them; or this one alone.

    torchrun --nproc-per-node 2 -m vesper learn ...      RANK, WORLD_SIZE, LOCAL_RANK are set

All see the same batches; each takes its share of every batch. Gradients are averaged by PyTorch's
DistributedDataParallel over gloo.
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
    """Which of how many processes this is."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0

    @property
    def is_first(self) -> bool:
        """Whether this process speaks for all."""
        return self.rank == 0

    @property
    def is_first_here(self) -> bool:
        """Whether this process makes files for all of its machine."""
        return self.local_rank == 0

    def share_of(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Every world-th row, from the rank on."""
        return rows[self.rank :: self.world]

    def data_parallel(self, module: nn.Module) -> nn.Module:
        """The module, with gradients averaged over all."""
        return module if self.world == 1 else DistributedDataParallel(module)

    def broadcast_from_first(self, value: Any) -> Any:
        """What the first process says, at all."""
        if self.world == 1:
            return value
        box = [value]
        torch.distributed.broadcast_object_list(box, src=0)
        return box[0]

    def gather(self, value: Any) -> list[Any]:
        """What all say, at all, by rank."""
        if self.world == 1:
            return [value]
        boxes: list[Any] = [None] * self.world
        torch.distributed.all_gather_object(boxes, value)
        return boxes

    def wait(self) -> None:
        """Until all are here."""
        if self.world > 1:
            torch.distributed.barrier()


@contextmanager
def ranks() -> Iterator[Ranks]:
    """Meet the other processes, if this one was started with some."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Ranks()
        return
    torch.distributed.init_process_group("gloo")
    try:
        yield Ranks(int(os.environ["RANK"]), world, int(os.environ.get("LOCAL_RANK", "0")))
    finally:
        torch.distributed.destroy_process_group()
