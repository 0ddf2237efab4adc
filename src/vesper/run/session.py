"""A run, from the first batch to the last. One batch, stop 1 of 5.

Both sides walk through the same `Itinerary`, made from the contract and the roster. The data party
drives; the label party answers. In one process or across a network the code is this; only the
channel below differs.

Next: src/vesper/party/data_party.py
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.graph.schedule import ShuffledEpochs
from vesper.party.data_party import DataParty
from vesper.party.label_party import LabelParty
from vesper.progress import Progress, silent
from vesper.protocol.messages import (
    Embeddings,
    Finished,
    Gradients,
    Purpose,
    Received,
    Verdict,
)
from vesper.run.link import Link

EVALUATION_ROWS = 8192


@dataclass(frozen=True, kw_only=True)
class Itinerary:
    """What both sides will do, known to both: roots are rows of the roster, by split in order."""

    stages: int
    num_train: int
    num_val: int
    num_test: int
    batch_size: int
    epochs: int
    seed: int

    def training(self, stage: int, epoch: int) -> ShuffledEpochs:
        """Batches of one epoch: each training node once."""
        return ShuffledEpochs(
            np.arange(self.num_train),
            batch_size=self.batch_size,
            num_epochs=1,
            seed=self.seed * 1_000_003 + stage * self.epochs + epoch,
        )

    def validation(self) -> NDArray[np.int64]:
        """Validation rows."""
        return np.arange(self.num_train, self.num_train + self.num_val)

    def test(self) -> NDArray[np.int64]:
        """Test rows."""
        first = self.num_train + self.num_val
        return np.arange(first, first + self.num_test)

    def held_out(self) -> NDArray[np.int64]:
        """Validation and test rows."""
        return np.arange(self.num_train, self.num_train + self.num_val + self.num_test)

    @property
    def steps(self) -> int:
        """Training steps of the whole run if nothing stops early."""
        return self.stages * self.epochs * -(-self.num_train // self.batch_size)


def blocks(rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Cut rows into blocks to evaluate."""
    for start in range(0, len(rows), EVALUATION_ROWS):
        yield rows[start : start + EVALUATION_ROWS]


def drive(
    data_party: DataParty,
    link: Link,
    itinerary: Itinerary,
    *,
    progress: Progress = silent,
    note: Callable[[], str] = str,
) -> None:
    """Run the data party's side; `note` says what stands beside the bar."""
    label_party = RemoteLabelParty(link)
    step = 0
    for stage in range(itinerary.stages):
        data_party.begin_stage(stage)
        for epoch in range(itinerary.epochs):
            for roots in itinerary.training(stage, epoch):
                embeddings = data_party.release(roots, purpose=Purpose.TRAIN)
                gradients = label_party.learn(embeddings)
                data_party.learn(gradients)
                step += 1
                progress("training", step, itinerary.steps, note())
            verdict = Verdict.GO_ON
            for roots in blocks(itinerary.validation()):
                verdict = label_party.score(data_party.release(roots, purpose=Purpose.EVALUATE))
            if verdict is Verdict.BEST:
                data_party.keep()
            if verdict is Verdict.STOP:
                break
        data_party.restore()
        for roots in blocks(itinerary.held_out()):
            label_party.score(data_party.release(roots, purpose=Purpose.EVALUATE))
    progress("training", itinerary.steps, itinerary.steps, note())
    link.send(Finished(steps=step))


class RemoteLabelParty:
    """The label party as the data party sees it: messages out, messages in."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def learn(self, embeddings: Embeddings) -> Gradients:
        """Send embeddings, wait for their gradients."""
        self._link.send(embeddings)
        return self._link.expect(Gradients)

    def score(self, embeddings: Embeddings) -> Verdict:
        """Send embeddings to be evaluated, wait for the verdict."""
        self._link.send(embeddings)
        return self._link.expect(Received).verdict


def answer(label_party: LabelParty, link: Link, itinerary: Itinerary) -> list[NDArray[np.float64]]:
    """Run the label party's side; give the scores of validation and test rows, stage by stage."""
    by_stage = []
    for stage in range(itinerary.stages):
        label_party.begin_stage(stage)
        for epoch in range(itinerary.epochs):
            for roots in itinerary.training(stage, epoch):
                link.send(label_party.learn(link.expect(Embeddings), roots))
            verdict = _collect(label_party, link, itinerary.validation(), judge=True)[1]
            if verdict is Verdict.STOP:
                break
        label_party.restore()
        by_stage.append(_collect(label_party, link, itinerary.held_out(), judge=False)[0])
    link.expect(Finished)
    label_party.settle()
    return by_stage


def _collect(
    label_party: LabelParty, link: Link, rows: NDArray[np.int64], *, judge: bool
) -> tuple[NDArray[np.float64], Verdict]:
    """Score all blocks of rows; the verdict goes back with the last."""
    scores: list[NDArray[np.float64]] = []
    verdict, seen = Verdict.GO_ON, 0
    for roots in blocks(rows):
        embeddings = link.expect(Embeddings)
        scores.append(label_party.score(embeddings, roots))
        seen += len(roots)
        if judge and seen == len(rows):
            verdict = label_party.judge(np.concatenate(scores), rows)
        link.send(Received(step=embeddings.step, verdict=verdict))
    return np.concatenate(scores), verdict  # (rows, num_classes)
