"""A two-layer network on released rows, trained by one process or by several together.

scores = W_2 ReLU(W_1 x + b_1) + b_2        x: released features of a node, scaled
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from vesper.errors import InputError, VesperError
from vesper.graph.labels import SPLITS, LabelHoldings
from vesper.graph.schedule import ShuffledEpochs
from vesper.method.settings import Config
from vesper.model.encoder import initialize
from vesper.model.objective import Objective
from vesper.model.objectives import make_objective
from vesper.progress import Progress
from vesper.run.hand_off.ranks import Ranks
from vesper.run.hand_off.released_rows import ReleasedRows, Scale
from vesper.run.itinerary import blocks


@dataclass(frozen=True)
class Learned:
    """How good the weights are that validation chose."""

    metric: str
    validation: float
    test: float | None
    epochs: int


class Scaling(nn.Module):
    """Keeps the scale beside the weights."""

    def __init__(self, scale: Scale) -> None:
        super().__init__()
        self.register_buffer("mean", torch.from_numpy(scale.mean))
        self.register_buffer("deviation", torch.from_numpy(scale.deviation))


class Learner:
    """Labels, rows and the network on top of them."""

    def __init__(
        self, config: Config, holdings: LabelHoldings, rows: ReleasedRows, ranks: Ranks
    ) -> None:
        run = config.run
        self._run, self._ranks, self._rows = run, ranks, rows
        self._split = {split: holdings.rows(split) for split in SPLITS}
        order = np.concatenate([self._split[split] for split in SPLITS])
        self._place = np.empty(len(order), dtype=np.int64)
        self._place[order] = np.arange(len(order))  # of a label in the objective
        self._objective: Objective = make_objective(
            run.task,
            holdings.classes,
            holdings.labels[order],
            num_train=len(self._split["train"]),
            balanced=False,
        )
        self._scale = rows.scale_of(self._split["train"])
        self.scaling = Scaling(self._scale)
        self.network = nn.Sequential(
            nn.Linear(rows.width, run.width),
            nn.ReLU(),
            nn.Linear(run.width, self._objective.outputs),
        )
        initialize(self.network, run.seed)

    def run(self, progress: Progress) -> Learned:
        """Train until validation has not become better for `patience` epochs."""
        run, train = self._run, self._split["train"]
        network = self._ranks.joined(self.network)
        optimizer = torch.optim.Adam(
            network.parameters(), lr=run.learning_rate, weight_decay=run.weight_decay
        )
        best, waited, epochs = -np.inf, 0, 0
        kept = copy.deepcopy(self.network.state_dict())
        size = run.batch_size or 1024
        refuse_small_batches(min(size, len(train)), world=self._ranks.world)
        while epochs < run.epochs and waited < run.patience:
            batches = ShuffledEpochs(
                train, batch_size=_even(size, len(train)), num_epochs=1, seed=run.seed + epochs
            )
            for batch in batches:
                self._step(network, optimizer, batch)
            epochs += 1
            metric = self._metric("val")
            if metric > best:
                best, waited, kept = metric, 0, copy.deepcopy(self.network.state_dict())
            else:
                waited += 1
            progress("learning", epochs, run.epochs, f"validation {metric:.2f}")
        self.network.load_state_dict(kept)
        progress("learning", run.epochs, run.epochs, f"validation {best:.2f}")
        return Learned(
            metric=self._objective.metric,
            validation=best,
            test=self._metric("test") if len(self._split["test"]) else None,
            epochs=epochs,
        )

    def _step(
        self, network: nn.Module, optimizer: torch.optim.Optimizer, batch: NDArray[np.int64]
    ) -> None:
        """One step on a batch, of which this process has its share.

        DistributedDataParallel averages over processes; shares may differ by one row, so each loss
        counts as its share does.
        """
        own = self._ranks.share_of(batch)
        inputs = torch.from_numpy(self._rows.of(own, self._scale))  # (own, width)
        loss = self._objective.loss(network(inputs), self._place[own])
        if not bool(torch.isfinite(loss)):
            raise VesperError("training diverged: expected a finite loss; lower learning_rate")
        optimizer.zero_grad()
        torch.autograd.backward([loss * (len(own) * self._ranks.world / len(batch))])
        optimizer.step()

    @torch.no_grad()
    def _metric(self, split: str) -> float:
        rows = self._split[split]
        own = self._ranks.share_of(rows)
        scores = [
            self.network(torch.from_numpy(self._rows.of(block, self._scale))).double().numpy()
            for block in blocks(own)
        ]
        outputs = self._objective.outputs
        mine = np.concatenate(scores) if scores else np.zeros((0, outputs))
        together = np.empty((len(rows), outputs))
        for rank, theirs in enumerate(self._ranks.gathered(mine)):
            together[rank :: self._ranks.world] = theirs
        return self._objective.evaluate(together, self._place[rows])


def _even(size: int, count: int) -> int:
    """Batches of about this size, the last one not much smaller."""
    return -(-count // -(-count // size))


def refuse_small_batches(size: int, *, world: int) -> None:
    """Refuse batches in which a process would have nothing to do.

    Raises:
        InputError: there are more processes than half of a batch.
    """
    if size < 2 * world:
        raise InputError(
            f"batch_size: expected at least {2 * world} rows a batch for {world} processes, got "
            f"{size}; use fewer processes"
        )
