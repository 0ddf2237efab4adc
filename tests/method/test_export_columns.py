import numpy as np
import pytest

from vesper.graph.graph import Graph
from vesper.mechanism.door import OpenDoor
from vesper.method.export_columns import columns_of, columns_of_sums

SUMS = np.array([[1.0, 5.0, 6.0], [2.0, 7.0, 8.0]], dtype=np.float32)


def test_logits_are_named_by_position() -> None:
    assert list(columns_of("stage0", SUMS)) == ["stage0_0", "stage0_1", "stage0_2"]


def test_the_first_coordinate_of_a_sum_is_a_degree() -> None:
    columns = columns_of_sums(2, SUMS, degree_share=0.5)
    assert list(columns) == ["hop2_degree", "hop2_0", "hop2_1"]
    assert columns["hop2_degree"].tolist() == [2.0, 4.0]
    assert columns["hop2_1"].tolist() == [6.0, 8.0]


def test_degrees_account_for_rounding_to_the_grid() -> None:
    edges = [(0, k) for k in range(1, 9)]
    for share in (0.15, 0.3, 0.6):
        messages = np.full((9, 1), share, dtype=np.float32)
        sums = OpenDoor(Graph.from_edges(9, edges)).release(messages, noise_std=0.0)
        columns = columns_of_sums(1, np.column_stack([sums, sums]), degree_share=share)
        assert columns["hop1_degree"][0] == pytest.approx(8.0)


def test_without_a_constant_there_is_no_degree() -> None:
    assert list(columns_of_sums(1, SUMS, degree_share=0.0)) == ["hop1_0", "hop1_1"]
