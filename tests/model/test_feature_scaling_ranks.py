"""Ranks by a compiled search equal those of torch, bit for bit."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from vesper.model.feature_scaling import ROWS_PER_PIECE, look_up_ranks

KNOTS = 16
Floats = NDArray[np.float32]


def by_torch(x: Floats, knots: Floats) -> Floats:
    values, of = torch.from_numpy(x.T.copy()), torch.from_numpy(knots)
    below = torch.searchsorted(of, values)
    return (below + torch.searchsorted(of, values, right=True)).T.numpy().astype(np.float32)


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("distinct", [1, 2, 5, 1000])
def test_every_value_has_the_rank_that_torch_finds(distinct: int, num_threads: int) -> None:
    rng = np.random.default_rng(distinct)
    pool = rng.normal(size=distinct).astype(np.float32)
    knots = np.sort(rng.choice(pool, (3, KNOTS)), axis=1)
    x = rng.choice(
        np.concatenate([pool, pool + 0.5, [-9, 9, 0.0, -0.0]]), (2 * ROWS_PER_PIECE + 7, 3)
    )
    x = np.ascontiguousarray(x, dtype=np.float32)
    ranks, out = np.arange(2 * KNOTS + 1, dtype=np.float32), np.empty_like(x)
    look_up_ranks(x, knots, ranks, out=out, num_threads=num_threads)
    assert np.array_equal(out, by_torch(x, knots))
