"""The models have the paper's numbers at full size and its shares at small sizes."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from vesper.datasets.block_model.published_graphs import PRODUCTS_LIKE, REDDIT_LIKE
from vesper.datasets.block_model.simulate_graph import BlockModel, simulate
from vesper.datasets.party_tables import EDGES, LABELS, NODES

BOTH = pytest.mark.parametrize("model", [PRODUCTS_LIKE, REDDIT_LIKE], ids=["products", "reddit"])


def test_numbers_of_the_paper() -> None:
    assert [
        (
            model.num_nodes,
            model.degrees.num_edges(model.num_nodes),
            model.num_train,
            model.num_val,
            model.features.num_features,
            len(model.class_shares),
        )
        for model in (PRODUCTS_LIKE, REDDIT_LIKE)
    ] == [
        (2_449_029, 61_859_140, 196_615, 39_323, 100, 47),
        (232_965, 57_307_946, 153_431, 23_831, 602, 41),
    ]


@BOTH
def test_full_size_degrees_follow_the_histogram(model: BlockModel) -> None:
    degrees = model.degrees.draw(model.num_nodes, np.random.default_rng(0))
    assert degrees.sum() == 2 * model.degrees.num_edges(model.num_nodes)
    histogram = np.array(model.degrees.histogram)
    shares = np.bincount(np.minimum(degrees, 50)) / model.num_nodes
    assert np.abs(shares - histogram / histogram.sum()).max() <= 1 / model.num_nodes
    assert degrees.max() <= model.degrees.max_degree


@pytest.mark.parametrize(
    ("model", "num_edges", "largest"),
    [(PRODUCTS_LIKE, round(6_000 * 50.5173 / 2), 0.27), (REDDIT_LIKE, 6_000 * 60 // 2, 0.12)],
    ids=["products", "reddit"],
)
def test_small_sizes_keep_the_shares(
    tmp_path: Path, model: BlockModel, num_edges: int, largest: float
) -> None:
    """The mean degree stays too, unless it would exceed 1 % of the nodes, as for Reddit."""
    out = tmp_path / "out"
    simulate(model, out, num_nodes=6_000, seed=0)
    labels = pq.read_table(out / LABELS)
    assert pq.ParquetFile(out / NODES).metadata.num_rows == 6_000
    assert pq.ParquetFile(out / EDGES).metadata.num_rows == num_edges
    counts = np.bincount(labels.column("label").to_numpy())
    assert len(counts) == len(model.class_shares)
    assert counts.max() / 6_000 == pytest.approx(largest, abs=0.01)
    splits = labels.column("split").to_pylist()
    assert splits.count("train") == round(6_000 * model.num_train / model.num_nodes)
