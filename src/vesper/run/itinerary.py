"""What both sides will do, made from the contract and the roster."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.graph.schedule import ShuffledEpochs

EVALUATION_ROWS = 8192


@dataclass(frozen=True, kw_only=True)
class Itinerary:
    """Stages and batches, known to both: roots are rows of the roster, by split in order."""

    stages: int
    num_train: int
    num_val: int
    num_test: int
    batch_size: int
    epochs: int
    patience: int
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
        return np.arange(self.num_train, self.num_rows)

    @property
    def num_rows(self) -> int:
        """Rows of the roster."""
        return self.num_train + self.num_val + self.num_test

    @property
    def steps(self) -> int:
        """Exchanges to train in the whole run if nothing stops early."""
        return self.stages * self.epochs * -(-self.num_train // self.batch_size)

    @property
    def most(self) -> dict[str, int]:
        """How much work it is, if nothing stops early."""
        return {"stages": self.stages, "epochs": self.epochs, "steps": self.steps}


def blocks(rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Cut rows into blocks to evaluate."""
    for start in range(0, len(rows), EVALUATION_ROWS):
        yield rows[start : start + EVALUATION_ROWS]
