"""reddit-like has the paper's numbers at full size and its shape at small ones."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from vesper.datasets.party_tables import EDGES, LABELS, NODES
from vesper.datasets.reddit_like import NUM_NODES, REDDIT_LIKE, simulate_reddit_like


def test_full_size_numbers_of_the_paper() -> None:
    assert NUM_NODES == 232_965
    assert REDDIT_LIKE.degrees.num_edges(NUM_NODES) == 57_307_946
    assert round(REDDIT_LIKE.train_share * NUM_NODES) == 153_431
    assert round(REDDIT_LIKE.val_share * NUM_NODES) == 23_831
    assert len(REDDIT_LIKE.class_shares) == 41
    assert REDDIT_LIKE.features.num_features == 602


def test_full_size_degrees_follow_the_histogram() -> None:
    degrees = REDDIT_LIKE.degrees.draw(NUM_NODES, np.random.default_rng(0))
    assert degrees.sum() == 114_615_892
    histogram = np.array(REDDIT_LIKE.degrees.histogram)
    shares = np.bincount(np.minimum(degrees, 50)) / NUM_NODES
    assert np.abs(shares - histogram / histogram.sum()).max() <= 1 / NUM_NODES
    assert degrees.max() <= 21_657


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reddit") / "out"
    simulate_reddit_like(out, num_nodes=6_000, seed=0)
    return out


def test_small_size_keeps_shares_and_shrinks_the_mean_degree(folder: Path) -> None:
    labels = pq.read_table(folder / LABELS)
    assert pq.ParquetFile(folder / NODES).metadata.num_rows == 6_000
    assert pq.ParquetFile(folder / EDGES).metadata.num_rows == 6_000 * 60 // 2
    counts = np.bincount(labels.column("label").to_numpy())
    assert len(counts) == 41
    assert counts.max() / 6_000 == pytest.approx(0.12, abs=0.01)
    splits = labels.column("split").to_pylist()
    assert splits.count("train") == round(6_000 * 153_431 / 232_965)
