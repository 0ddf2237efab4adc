"""Training from a released file: a two-layer network, in one process or in several.

    scores = W_2 ReLU(W_1 x + b_1) + b_2        x: scaled released features of a node

The rows of the file need not fit in memory. Everything here is post-processing of the file (claim
POST): its statement covers the model, its predictions, and every further training run. One process
or several (`ranks`) produce the same model, up to the order in which floats are added.
"""

import copy
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from vesper.datasets.folders import new_folder
from vesper.errors import InputError, VesperError
from vesper.export.learner_ranks import Ranks
from vesper.export.released_rows import ColumnScale, ExportedRows, feature_names, write_rows
from vesper.files import partial_folder
from vesper.graph.labels import SPLITS, LabelHoldings, open_labels
from vesper.graph.schedule import ShuffledEpochs
from vesper.method.settings import Config
from vesper.model.encoders import initialize
from vesper.model.objective import Objective
from vesper.model.objective_factory import make_objective
from vesper.privacy.ledger.statement import verify_file
from vesper.progress import Progress, no_progress
from vesper.session.loop import evaluation_blocks
from vesper.session.result import StoredResult, peak_memory, refuse_used_folder, write_run
from vesper.session.run_spec import refuse_unusable_labels


@dataclass(frozen=True)
class LearnOutcome:
    """How good the best weights on validation nodes are."""

    metric: str
    validation: float
    test: float | None
    epochs: int


class ColumnScaling(nn.Module):
    """Holds the column scale as a module, so that it is saved like weights."""

    def __init__(self, scale: ColumnScale) -> None:
        super().__init__()
        self.register_buffer("mean", torch.from_numpy(scale.mean))
        self.register_buffer("deviation", torch.from_numpy(scale.deviation))


class ExportLearner:
    """Labels, rows and the network on top of them."""

    def __init__(
        self, config: Config, holdings: LabelHoldings, rows: ExportedRows, ranks: Ranks
    ) -> None:
        run = config.run
        self._run, self._ranks, self._rows = run, ranks, rows
        self._split = {split: holdings.rows(split) for split in SPLITS}
        order = np.concatenate([self._split[split] for split in SPLITS])
        self._place = np.empty(len(order), dtype=np.int64)
        self._place[order] = np.arange(len(order))  # position of each label in the objective
        self._objective: Objective = make_objective(
            run.task,
            holdings.classes,
            holdings.labels[order],
            num_train=len(self._split["train"]),
            balanced=False,
        )
        self._scale = rows.scale_of(self._split["train"])
        self.scaling = ColumnScaling(self._scale)
        self.network = nn.Sequential(
            nn.Linear(rows.width, run.width),
            nn.ReLU(),
            nn.Linear(run.width, self._objective.outputs),
        )
        initialize(self.network, run.seed)

    def run(self, progress: Progress) -> LearnOutcome:
        """Train until validation has not improved for `patience` epochs."""
        run, train = self._run, self._split["train"]
        network = self._ranks.data_parallel(self.network)
        optimizer = torch.optim.Adam(
            network.parameters(), lr=run.learning_rate, weight_decay=run.weight_decay
        )
        best, waited, epochs = -np.inf, 0, 0
        best_weights = copy.deepcopy(self.network.state_dict())
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
                best, waited = metric, 0
                best_weights = copy.deepcopy(self.network.state_dict())
            else:
                waited += 1
            progress("learning", epochs, run.epochs, f"validation {metric:.2f}")
        self.network.load_state_dict(best_weights)
        progress("learning", run.epochs, run.epochs, f"validation {best:.2f}")
        return LearnOutcome(
            metric=self._objective.metric,
            validation=best,
            test=self._metric("test") if len(self._split["test"]) else None,
            epochs=epochs,
        )

    def _step(
        self, network: nn.Module, optimizer: torch.optim.Optimizer, batch: NDArray[np.int64]
    ) -> None:
        """Take one step on this process's share of a batch.

        DistributedDataParallel averages over processes; shares may differ by one row, so each loss
        is weighted by its share.
        """
        own = self._ranks.share_of(batch)
        inputs = torch.from_numpy(self._rows.scaled(own, self._scale))  # (own, width)
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
            self.network(torch.from_numpy(self._rows.scaled(block, self._scale))).double().numpy()
            for block in evaluation_blocks(own)
        ]
        outputs = self._objective.outputs
        own_scores = np.concatenate(scores) if scores else np.zeros((0, outputs))
        all_scores = np.empty((len(rows), outputs))
        for rank, part in enumerate(self._ranks.gather(own_scores)):
            all_scores[rank :: self._ranks.world] = part
        return self._objective.evaluate(all_scores, self._place[rows])


def _even(size: int, count: int) -> int:
    """Reduce a batch size so that the last batch is not much smaller than the others."""
    return -(-count // -(-count // size))


def refuse_small_batches(size: int, *, world: int) -> None:
    """Refuse batches with fewer than two rows per process.

    Raises:
        InputError: the batches are too small.
    """
    if size < 2 * world:
        raise InputError(
            f"batch_size: expected at least {2 * world} rows per batch for {world} processes, got "
            f"{size}; use fewer processes"
        )


@dataclass(frozen=True)
class LearnResult(StoredResult):
    """Result of training from a released file, with the statement of that file."""

    metric: str
    validation: float
    test: float | None
    epochs: int
    rows: int
    columns: int
    processes: int
    seconds: float
    peak_memory_bytes: int
    statement: dict[str, Any]


def learn(
    released: Path,
    labels: Path,
    config: Config,
    out: Path,
    *,
    ranks: Ranks,
    public_key: str | None = None,
    progress: Progress = no_progress,
) -> LearnResult:
    """Train on a released file and write a run folder.

    Args:
        released: file written by `vesper release`, with its statement next to it.
        labels: the label party's folder.
        config: of `run`, width, epochs, patience, batch_size, learning_rate and seed are used.
        out: a new or empty folder.
        ranks: which of several processes this is.
        public_key: the data party's, received over another channel.
        progress: receives progress reports.

    Raises:
        InputError: files or settings cannot be used.
        VesperError: the file does not match its statement, training diverged, or another process
            failed.
    """
    started = time.perf_counter()
    refuse_used_folder(out)
    statement = verify_file(released, public_key=public_key)
    holdings = open_labels(labels, decimals=config.run.task != "classification")
    refuse_unusable_labels(config, holdings)
    names = feature_names(released)
    with ExitStack() as stack:
        store = _store(stack, released, holdings, out, ranks, progress)
        rows = ExportedRows(store, num_rows=len(holdings.ids), width=len(names))
        learner = ExportLearner(config, holdings, rows, ranks)
        outcome = learner.run(progress)
        result = LearnResult(
            metric=outcome.metric,
            validation=outcome.validation,
            test=outcome.test,
            epochs=outcome.epochs,
            rows=len(holdings.ids),
            columns=len(names),
            processes=ranks.world,
            seconds=time.perf_counter() - started,
            peak_memory_bytes=peak_memory(),
            statement=statement,
        )
        if ranks.is_first:
            with new_folder(out) as new:
                write_run(new, config, result, model=learner.network, scale=learner.scaling)
        ranks.wait()
    return result


def _store(
    stack: ExitStack,
    released: Path,
    holdings: LabelHoldings,
    out: Path,
    ranks: Ranks,
    progress: Progress,
) -> Path:
    """Write the row store once per machine; it is removed when `stack` closes."""
    path: str | None = None
    error: VesperError | None = None
    if ranks.is_first_here:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            folder = stack.enter_context(partial_folder(out.parent, f".{out.name}.rows-"))
            write_rows(released, holdings, folder / "rows.f32", progress=progress)
            path = str(folder / "rows.f32")
        except VesperError as failure:
            error = failure
        except OSError as failure:
            error = VesperError(
                f"{out}: the rows of labelled nodes cannot be written next to it "
                f"({failure.strerror or failure}); free some space and try again"
            )
    outcomes = ranks.gather((path, None if error is None else str(error)))
    if error is not None:
        raise error
    failures = [reason for _, reason in outcomes if reason is not None]
    if failures:
        raise VesperError(f"another process failed: {failures[0]}")
    first_here = ranks.rank - ranks.local_rank
    path = outcomes[first_here][0]
    assert path is not None
    return Path(path)
