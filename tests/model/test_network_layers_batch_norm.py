"""Batch normalisation: as in PyTorch, and also for a single row."""

import pytest
import torch
from torch import nn

from vesper.model.network_layers import BatchNorm


def test_several_rows_are_normalised_as_in_pytorch() -> None:
    rows = torch.arange(12.0).reshape(4, 3)
    assert torch.equal(BatchNorm(3)(rows), nn.BatchNorm1d(3)(rows))


def test_one_row_uses_the_statistics_of_earlier_batches() -> None:
    ours, theirs = BatchNorm(2), nn.BatchNorm1d(2)
    rows = torch.tensor([[1.0, 2.0], [3.0, 8.0]])
    one = torch.tensor([[2.0, 5.0]])
    ours(rows), theirs(rows)
    assert torch.allclose(ours(one), theirs.eval()(one))
    with pytest.raises(ValueError, match="more than 1 value"):
        nn.BatchNorm1d(2)(one)
