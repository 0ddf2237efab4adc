import numpy as np

from vesper.graph.graph import Graph
from vesper.mechanism.door import OpenDoor
from vesper.method.export_columns import label_free_columns

STAR = Graph.from_edges(6, [(0, k) for k in range(1, 5)])
FEATURES = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)


def test_degrees_and_sums_without_noise() -> None:
    columns = label_free_columns(FEATURES, OpenDoor(STAR), noise_stds=[0.0, 0.0], degree_share=0.5)
    groups = {name.split("_")[0] for name in columns}
    assert groups == {"own", "hop1", "hop2"}
    for hop in (1, 2):
        assert columns[f"hop{hop}_degree"].tolist() == [4, 1, 1, 1, 1, 0]
    sums = np.column_stack([columns[f"hop1_{k}"] for k in range(6)])
    assert not sums[5].any()
    assert np.array_equal(sums[1], sums[2])  # leaves receive from the centre only
    assert 0.75 <= np.square(sums[1]).sum() / 0.75 + 0.1 <= 1.11  # one message, on the grid


def test_a_table_without_features_still_has_degrees() -> None:
    columns = label_free_columns(
        np.zeros((6, 0), dtype=np.float32), OpenDoor(STAR), noise_stds=[0.0], degree_share=1.0
    )
    assert list(columns) == ["hop1_degree"]
    assert columns["hop1_degree"].tolist() == [4, 1, 1, 1, 1, 0]


def test_one_edge_moves_two_rows_of_the_first_hop() -> None:
    more = Graph.from_edges(6, [*((0, k) for k in range(1, 5)), (4, 5)])
    first, second = (
        label_free_columns(FEATURES, OpenDoor(graph), noise_stds=[0.0], degree_share=0.5)
        for graph in (STAR, more)
    )
    changed = {name: np.flatnonzero(first[name] != second[name]).tolist() for name in first}
    assert changed["hop1_degree"] == [4, 5]
    assert all(set(rows) <= {4, 5} for rows in changed.values())
    assert not any(rows for name, rows in changed.items() if name.startswith("own"))
