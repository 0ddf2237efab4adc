"""The two loops of a session: stages, epochs and batches, on either side.

    data party                           label party
    embed_batch(roots)  -- embeddings -> receive_embeddings(roots)
    learn(gradients)    <- gradients --  learn(embeddings, roots)

Both sides follow the same `TrainingSchedule`, which they derive from the contract and the roster.
The code is the same in one process and across a network; only the channel below differs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from vesper.graph.schedule import ShuffledEpochs
from vesper.mechanism.door import Door
from vesper.party.data_party import DataParty
from vesper.party.label_party import LabelParty
from vesper.party.state import Arrays, without_prefix
from vesper.protocol.messages import Embeddings, Purpose, SessionFinished, Verdict
from vesper.session.checkpoint import START_POSITION, Checkpoints, NoCheckpoints, Position
from vesper.session.observer import NO_OBSERVER, EpochFacts, SessionObserver
from vesper.session.peer import DataSide, Link, RemoteLabelParty

EVALUATION_BLOCK = 8192


@dataclass(frozen=True, kw_only=True)
class TrainingSchedule:
    """Stages and batches of a run; roots are rows of the roster: training, validation, test."""

    stages: int
    num_train: int
    num_val: int
    num_test: int
    batch_size: int
    epochs: int
    patience: int
    seed: int

    def training_batches(self, stage: int, epoch: int) -> ShuffledEpochs:
        """Batches of one epoch: each training node once."""
        return ShuffledEpochs(
            np.arange(self.num_train),
            batch_size=self.batch_size,
            num_epochs=1,
            seed=self.seed * 1_000_003 + stage * self.epochs + epoch,
        )

    def validation_rows(self) -> NDArray[np.int64]:
        """Rows of validation nodes."""
        return np.arange(self.num_train, self.num_train + self.num_val)

    def test_rows(self) -> NDArray[np.int64]:
        """Rows of test nodes."""
        first = self.num_train + self.num_val
        return np.arange(first, first + self.num_test)

    def held_out_rows(self) -> NDArray[np.int64]:
        """Rows of validation and test nodes."""
        return np.arange(self.num_train, self.num_rows)

    @property
    def num_rows(self) -> int:
        """Number of rows of the roster."""
        return self.num_train + self.num_val + self.num_test

    @property
    def steps(self) -> int:
        """Training steps of the whole run if no stage stops early."""
        return self.stages * self.epochs * -(-self.num_train // self.batch_size)

    def most_steps(self, at: Position) -> int:
        """Training steps from the beginning of the run, if no stage stops early from `at` on.

        Stages that have stopped early have used fewer steps, so that the total gets smaller.
        """
        per_epoch = -(-self.num_train // self.batch_size)
        left = (self.stages - at.stage) * self.epochs - at.epoch
        return at.step + left * per_epoch

    @property
    def max_work(self) -> dict[str, int]:
        """Number of stages, epochs and steps if no stage stops early."""
        return {"stages": self.stages, "epochs": self.epochs, "steps": self.steps}


def evaluation_blocks(rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Divide rows into blocks to evaluate."""
    for start in range(0, len(rows), EVALUATION_BLOCK):
        yield rows[start : start + EVALUATION_BLOCK]


NO_CHECKPOINTS = NoCheckpoints()


def run_data_side(
    data_party: DataParty,
    link: Link,
    schedule: TrainingSchedule,
    *,
    door: Door,
    checkpoints: Checkpoints = NO_CHECKPOINTS,
    observer: SessionObserver = NO_OBSERVER,
) -> None:
    """Run the data party's side.

    Args:
        data_party: the model's first half.
        link: connection to the label party.
        schedule: stages and batches of the run.
        door: gives the summary of what was spent.
        checkpoints: where the run resumes.
        observer: receives progress, epochs and warnings.
    """
    label_party = RemoteLabelParty(link, patience=schedule.patience)
    checkpoint = checkpoints.load()
    if checkpoint is not None:
        data_party.load_state_arrays(checkpoint[1], stage=checkpoint[0].stage)
        label_party.load_state_arrays(checkpoint[1])
    spending, done = door.spending_summary(), 0 if checkpoint is None else checkpoint[0].step
    for at in _epochs(schedule, checkpoint and checkpoint[0]):
        if at.is_fresh and at.epoch == 0:
            data_party.begin_stage(at.stage)
            label_party.begin_stage()
            spending = door.spending_summary()  # releases are made when a stage begins
        if at.is_fresh:
            checkpoints.save(at.position, data_party.state_arrays() | label_party.state_arrays())
        for step, roots in enumerate(
            schedule.training_batches(at.stage, at.epoch), start=at.step + 1
        ):
            embeddings = data_party.embed_batch(roots, purpose=Purpose.TRAIN)
            gradients = label_party.learn(embeddings)
            data_party.learn(gradients)
            observer.progress("training", step, schedule.most_steps(at.position), spending)
            done = step
        verdict = label_party.request_verdict(
            _evaluation_embeddings(data_party, schedule.validation_rows())
        )
        if verdict is Verdict.BEST:
            data_party.save_best()
        observer.epoch(at.facts(verdict))
        if at.ends_stage(verdict):
            data_party.restore_best()
            label_party.send_held_out(_evaluation_embeddings(data_party, schedule.held_out_rows()))
    observer.progress("training", done, done, spending)
    link.send(SessionFinished())


def run_label_side(
    label_party: LabelParty,
    data_party: DataSide,
    schedule: TrainingSchedule,
    *,
    checkpoints: Checkpoints = NO_CHECKPOINTS,
    observer: SessionObserver = NO_OBSERVER,
) -> list[dict[str, float]]:
    """Run the label party's side; return validation and test metrics of each stage."""
    stages: list[dict[str, float]] = []
    checkpoint = checkpoints.load()
    if checkpoint is not None:
        label_party.load_state_arrays(checkpoint[1], stage=checkpoint[0].stage)
        data_party.load_state_arrays(checkpoint[1])
        stages = _metrics_in(checkpoint[1])
    collect = partial(_score_blocks, label_party, data_party)
    done = 0 if checkpoint is None else checkpoint[0].step
    for at in _epochs(schedule, checkpoint and checkpoint[0]):
        if at.is_fresh and at.epoch == 0:
            label_party.begin_stage(at.stage)
            data_party.begin_stage(at.stage)
        if at.is_fresh:
            arrays = label_party.state_arrays() | data_party.state_arrays() | _metric_arrays(stages)
            checkpoints.save(at.position, arrays)
        losses = []
        for step, roots in enumerate(
            schedule.training_batches(at.stage, at.epoch), start=at.step + 1
        ):
            embeddings = data_party.receive_embeddings(roots, Purpose.TRAIN)
            data_party.learn(label_party.learn(embeddings, roots))
            label_party.run_local_updates()
            losses.append(label_party.last_loss)
            note = label_party.progress_note()
            observer.progress("training", step, schedule.most_steps(at.position), note)
            done = step
        verdict = collect(schedule.validation_rows(), give_verdict=True)[1]
        observer.epoch(at.facts(verdict, loss=fmean(losses), validation=label_party.last_metric))
        if at.ends_stage(verdict):
            label_party.restore_best()
            # Not in a variable: scores of all nodes would stay in memory during the next stage.
            stages.append(
                _stage_metrics(
                    label_party, schedule, collect(schedule.held_out_rows(), give_verdict=False)[0]
                )
            )
    observer.progress("training", done, done, label_party.progress_note())
    data_party.finish()
    label_party.select_stage()
    return stages


def _evaluation_embeddings(data_party: DataParty, rows: NDArray[np.int64]) -> Iterator[Embeddings]:
    for roots in evaluation_blocks(rows):
        yield data_party.embed_batch(roots, purpose=Purpose.EVALUATE)


class _Epoch:
    """One epoch of a stage, in the loop of either side."""

    def __init__(self, position: Position, *, is_last: bool, is_fresh: bool) -> None:
        self.position, self.is_fresh = position, is_fresh
        self.stage, self.epoch, self.step = position.stage, position.epoch, position.step
        self._is_last, self.stopped = is_last, False

    def ends_stage(self, verdict: Verdict) -> bool:
        """Whether the stage ends here: by the label party's verdict, or after the last epoch."""
        self.stopped = self._is_last or verdict is Verdict.STOP
        return self.stopped

    def facts(
        self, verdict: Verdict, *, loss: float | None = None, validation: float | None = None
    ) -> EpochFacts:
        """What an observer learns about it."""
        is_best = verdict is Verdict.BEST
        return EpochFacts(
            stage=self.stage, epoch=self.epoch, is_best=is_best, loss=loss, validation=validation
        )


def _epochs(schedule: TrainingSchedule, start: Position | None) -> Iterator[_Epoch]:
    """Go through all epochs of all stages, or from a position on; a stage may end early."""
    at, is_fresh = start or START_POSITION, start is None
    steps = -(-schedule.num_train // schedule.batch_size)
    while at.stage < schedule.stages:
        epoch = _Epoch(at, is_last=at.epoch + 1 == schedule.epochs, is_fresh=is_fresh)
        yield epoch
        is_fresh = True
        if epoch.stopped:
            at = Position(at.stage + 1, 0, at.step + steps)
        else:
            at = Position(at.stage, at.epoch + 1, at.step + steps)


def _stage_metrics(
    label_party: LabelParty, schedule: TrainingSchedule, scores: NDArray[np.float64]
) -> dict[str, float]:
    """Metrics of one stage, from the scores of the held-out rows."""
    split_at = schedule.num_val  # slices are views: no second copy of all scores
    parts = {
        "validation": (scores[:split_at], schedule.validation_rows()),
        "test": (scores[split_at:], schedule.test_rows()),
    }
    return {
        name: label_party.evaluate(part, rows) for name, (part, rows) in parts.items() if len(rows)
    }


def _metric_arrays(stages: list[dict[str, float]]) -> Arrays:
    names = sorted({name for stage in stages for name in stage})
    return {f"measured/{name}": np.array([stage[name] for stage in stages]) for name in names}


def _metrics_in(arrays: Arrays) -> list[dict[str, float]]:
    columns = without_prefix("measured", arrays)
    count = max((len(column) for column in columns.values()), default=0)
    return [{name: float(column[k]) for name, column in columns.items()} for k in range(count)]


def _score_blocks(
    label_party: LabelParty,
    data_party: DataSide,
    rows: NDArray[np.int64],
    *,
    give_verdict: bool,
) -> tuple[NDArray[np.float64], Verdict]:
    """Score all blocks of rows; the verdict is sent after the last."""
    scores = np.empty((0, 0))
    verdict, done = Verdict.CONTINUE, 0
    for roots in evaluation_blocks(rows):
        embeddings = data_party.receive_embeddings(roots, Purpose.EVALUATE)
        block = label_party.score(embeddings, roots)
        if not done:
            scores = np.empty((len(rows), block.shape[1]))
        scores[done : done + len(roots)] = block
        done += len(roots)
        if give_verdict and done == len(rows):
            verdict = label_party.verdict_of(scores, rows)
        data_party.send_verdict(embeddings.step, verdict)
    return scores, verdict  # (rows, num_classes)
