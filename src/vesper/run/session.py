"""A run, from the first batch to the last. One batch, stop 1 of 5.

Both sides walk through the same `Itinerary`, made from the contract and the roster. The data party
drives; the label party answers. In one process or across a network the code is this; only the
channel below differs.

Next: src/vesper/party/data_party.py
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.graph.schedule import ShuffledEpochs
from vesper.party.data_party import DataParty
from vesper.party.label_party import LabelParty
from vesper.progress import Progress, silent
from vesper.protocol.messages import Embeddings, Finished, Gradients, Purpose, Received
from vesper.run.link import Link

EVALUATION_ROWS = 8192


@dataclass(frozen=True, kw_only=True)
class Itinerary:
    """What both sides will do, known to both: roots are rows of the roster, train rows first."""

    stages: int
    num_train: int
    num_labelled: int
    batch_size: int
    epochs: int
    seed: int

    def training(self, stage: int) -> ShuffledEpochs:
        """Batches of one stage: each training node once an epoch."""
        return ShuffledEpochs(
            np.arange(self.num_train),
            batch_size=self.batch_size,
            num_epochs=self.epochs,
            seed=self.seed + stage,
        )

    def evaluation(self) -> Iterator[NDArray[np.int64]]:
        """Blocks of validation and test rows."""
        for start in range(self.num_train, self.num_labelled, EVALUATION_ROWS):
            yield np.arange(start, min(start + EVALUATION_ROWS, self.num_labelled))

    @property
    def steps(self) -> int:
        """Training steps of the whole run."""
        return sum(len(self.training(stage)) for stage in range(self.stages))


def drive(
    data_party: DataParty, link: Link, itinerary: Itinerary, *, progress: Progress = silent
) -> None:
    """Run the data party's side."""
    label_party = RemoteLabelParty(link)
    step = 0
    for stage in range(itinerary.stages):
        data_party.begin_stage(stage)
        for roots in itinerary.training(stage):
            embeddings = data_party.release(roots, purpose=Purpose.TRAIN)
            gradients = label_party.learn(embeddings)
            data_party.learn(gradients)
            step += 1
            progress("training", step, itinerary.steps)
        for roots in itinerary.evaluation():
            label_party.score(data_party.release(roots, purpose=Purpose.EVALUATE))
    link.send(Finished(steps=step))


class RemoteLabelParty:
    """The label party as the data party sees it: messages out, messages in."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def learn(self, embeddings: Embeddings) -> Gradients:
        """Send embeddings, wait for their gradients."""
        self._link.send(embeddings)
        return self._link.expect(Gradients)

    def score(self, embeddings: Embeddings) -> None:
        """Send embeddings to be evaluated."""
        self._link.send(embeddings)
        self._link.expect(Received)


def answer(label_party: LabelParty, link: Link, itinerary: Itinerary) -> list[NDArray[np.float64]]:
    """Run the label party's side; give the scores of validation and test rows, stage by stage."""
    scores = []
    for stage in range(itinerary.stages):
        label_party.begin_stage(stage)
        for roots in itinerary.training(stage):
            link.send(label_party.learn(link.expect(Embeddings), roots))
        blocks = []
        for roots in itinerary.evaluation():
            embeddings = link.expect(Embeddings)
            blocks.append(label_party.score(embeddings, roots))
            link.send(Received(step=embeddings.step))
        scores.append(np.concatenate(blocks))  # (num_labelled - num_train, num_classes)
    link.expect(Finished)
    return scores
