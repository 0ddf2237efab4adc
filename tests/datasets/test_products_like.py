"""products-like has the paper's numbers at full size and its shape at small ones."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from vesper.datasets.party_tables import EDGES, LABELS, NODES
from vesper.datasets.products_like import NUM_NODES, PRODUCTS_LIKE, simulate_products_like


def test_full_size_numbers_of_the_paper() -> None:
    assert NUM_NODES == 2_449_029
    assert PRODUCTS_LIKE.degrees.num_edges(NUM_NODES) == 61_859_140
    assert round(PRODUCTS_LIKE.train_share * NUM_NODES) == 196_615
    assert round(PRODUCTS_LIKE.val_share * NUM_NODES) == 39_323
    assert len(PRODUCTS_LIKE.class_shares) == 47
    assert PRODUCTS_LIKE.features.num_features == 100


def test_full_size_degrees_follow_the_histogram() -> None:
    degrees = PRODUCTS_LIKE.degrees.draw(NUM_NODES, np.random.default_rng(0))
    assert degrees.sum() == 123_718_280
    histogram = np.array(PRODUCTS_LIKE.degrees.histogram)
    shares = np.bincount(np.minimum(degrees, 50)) / NUM_NODES
    assert np.abs(shares - histogram / histogram.sum()).max() <= 1 / NUM_NODES
    assert degrees.max() <= 17_481


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("products") / "out"
    simulate_products_like(out, num_nodes=6_000, seed=0)
    return out


def test_small_size_keeps_shares_and_mean_degree(folder: Path) -> None:
    labels = pq.read_table(folder / LABELS)
    assert pq.ParquetFile(folder / NODES).metadata.num_rows == 6_000
    assert pq.ParquetFile(folder / EDGES).metadata.num_rows == round(6_000 * 50.5173 / 2)
    counts = np.bincount(labels.column("label").to_numpy())
    assert len(counts) == 47
    assert counts.max() / 6_000 == pytest.approx(0.27, abs=0.01)
    splits = labels.column("split").to_pylist()
    assert splits.count("train") == round(6_000 * 196_615 / 2_449_029)
