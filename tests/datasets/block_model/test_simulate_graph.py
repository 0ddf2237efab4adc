"""Whole simulated data sets: tables, counts, class structure, and reproducibility."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from vesper.datasets.block_model.class_features import FeatureModel
from vesper.datasets.block_model.class_structure import Mixing, skewed_shares
from vesper.datasets.block_model.degree_profile import DegreeProfile
from vesper.datasets.block_model.published_graphs import PRODUCTS_LIKE, REDDIT_LIKE
from vesper.datasets.block_model.simulate_graph import BlockModel, simulate
from vesper.datasets.party_tables import EDGES, LABELS, NODES
from vesper.errors import InputError

MODEL = BlockModel(
    num_nodes=500,
    num_train=50,
    num_val=25,
    class_shares=skewed_shares(6, largest=0.3, ratio=0.8),
    num_families=2,
    degrees=DegreeProfile(
        histogram=(5, 10, 15, 20, 20, 30), mean_degree=8.0, max_degree=200, tail_log_std=1.0
    ),
    mixing=Mixing(home_alpha=2.0, home_beta=1.0, clear_degree=20.0, stray_share=0.5, kinship=3.0),
    features=FeatureModel(
        num_features=8,
        num_subclusters=2,
        family_std=0.5,
        class_std=0.5,
        subcluster_std=0.3,
        noise_log_std=0.2,
    ),
)


@dataclass(frozen=True)
class Simulated:
    x: NDArray[np.float32]
    src: NDArray[np.int64]
    dst: NDArray[np.int64]
    labels: NDArray[np.int32]
    splits: NDArray[np.str_]


def read(out: Path) -> Simulated:
    nodes, edges = pq.read_table(out / NODES), pq.read_table(out / EDGES)
    labels = pq.read_table(out / LABELS)
    assert nodes.column("id").to_pylist() == list(range(len(nodes)))
    assert labels.column("id").equals(nodes.column("id"))
    return Simulated(
        x=np.array(nodes.column("x").to_pylist(), np.float32),
        src=edges.column("src").to_numpy(),
        dst=edges.column("dst").to_numpy(),
        labels=labels.column("label").to_numpy(),
        splits=np.array(labels.column("split").to_pylist()),
    )


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    out = tmp_path_factory.mktemp("block") / "out"
    simulate(MODEL, out, num_nodes=4_000, seed=0)
    return read(out)


def test_counts(simulated: Simulated) -> None:
    assert simulated.x.shape == (4_000, 8)
    assert len(simulated.src) == 16_000
    assert (simulated.src < simulated.dst).all()
    assert len({*zip(simulated.src.tolist(), simulated.dst.tolist(), strict=True)}) == 16_000
    assert {name: int((simulated.splits == name).sum()) for name in ("train", "val", "test")} == {
        "train": 400,
        "val": 200,
        "test": 3_400,
    }
    assert np.bincount(simulated.labels).min() > 0


def test_degrees_match_the_profile(simulated: Simulated) -> None:
    degrees = np.bincount(np.concatenate([simulated.src, simulated.dst]), minlength=4_000)
    assert np.abs(np.bincount(degrees)[:5] - [200, 400, 600, 800, 800]).max() <= 1


def test_ids_reveal_nothing(simulated: Simulated) -> None:
    ids = np.arange(4_000)
    degrees = np.bincount(np.concatenate([simulated.src, simulated.dst]), minlength=4_000)
    for column in (simulated.labels, degrees, simulated.splits == "train"):
        assert abs(np.corrcoef(ids, column)[0, 1]) < 0.06


def test_edges_join_equal_classes(simulated: Simulated) -> None:
    labels = simulated.labels
    equal = float((labels[simulated.src] == labels[simulated.dst]).mean())
    by_chance = float(((np.bincount(labels) / len(labels)) ** 2).sum())
    assert equal > 2 * by_chance


def test_a_seed_gives_the_same_bytes_and_another_seed_another_graph(tmp_path: Path) -> None:
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        simulate(MODEL, tmp_path / name, num_nodes=500, seed=seed)
    for table in (NODES, EDGES, LABELS):
        content = [(tmp_path / name / table).read_bytes() for name in ("first", "again", "other")]
        assert content[0] == content[1]
        assert content[0] != content[2]


@pytest.mark.parametrize("model", [PRODUCTS_LIKE, REDDIT_LIKE], ids=["products", "reddit"])
def test_neighbours_reveal_more_than_features(tmp_path: Path, model: BlockModel) -> None:
    simulate(model, tmp_path / "out", num_nodes=5_000, seed=0)
    small = read(tmp_path / "out")
    ends = np.concatenate([small.src, small.dst]), np.concatenate([small.dst, small.src])
    adjacency = csr_matrix((np.ones(len(ends[0]), np.float32), ends), shape=(5_000, 5_000))
    degrees = np.maximum(adjacency.sum(axis=1), 1)
    one_hop = np.asarray(adjacency @ small.x / degrees)
    two_hops = np.asarray(adjacency @ one_hop / degrees)
    largest = np.bincount(small.labels).max() / 5_000
    alone = ridge_accuracy(small.x, small.labels)
    together = ridge_accuracy(np.hstack([small.x, one_hop, two_hops]), small.labels)
    assert largest + 0.05 < alone < together - 0.1
    assert together < 0.97


def ridge_accuracy(x: NDArray[np.float32], labels: NDArray[np.int32]) -> float:
    """Accuracy on the second half of a ridge classifier fitted to the first half."""
    half = len(x) // 2
    x = (x - x[:half].mean(axis=0)) / x[:half].std(axis=0)
    targets = np.eye(labels.max() + 1, dtype=np.float32)[labels[:half]]
    gram = x[:half].T @ x[:half] + 0.1 * half * np.eye(x.shape[1], dtype=np.float32)
    weights = np.linalg.solve(gram, x[:half].T @ (targets - targets.mean(axis=0)))
    scores = x[half:] @ weights + targets.mean(axis=0)
    return float((scores.argmax(axis=1) == labels[half:]).mean())


@pytest.mark.parametrize("num_nodes", [100, 101, 333])
def test_tiny_graphs(tmp_path: Path, num_nodes: int) -> None:
    simulate(MODEL, tmp_path / "out", num_nodes=num_nodes, seed=0)
    tiny = read(tmp_path / "out")
    assert len(tiny.labels) == num_nodes
    assert len(tiny.src) == round(0.01 * num_nodes * num_nodes / 2)


@pytest.mark.parametrize(("num_nodes", "seed"), [(99, 0), (2**31, 0), (500, -1)])
def test_sizes_and_seeds_out_of_range_are_refused(
    tmp_path: Path, num_nodes: int, seed: int
) -> None:
    with pytest.raises(InputError, match=r"expected .*, got"):
        simulate(MODEL, tmp_path / "out", num_nodes=num_nodes, seed=seed)
    assert not (tmp_path / "out").exists()


def test_progress_names_edges_and_features(tmp_path: Path) -> None:
    reports: list[tuple[str, int, int]] = []
    simulate(
        MODEL,
        tmp_path / "out",
        progress=lambda task, done, total, note="": reports.append((task, done, total)),
    )
    assert {task for task, _, _ in reports} == {"edges", "features"}
    assert reports[-1] == ("features", 500, 500)
