"""All contenders do the same work, and the page states the limit and the targets."""

import numpy as np
import pytest
from benchmarks.release import WIDTHS, report
from benchmarks.release_peers import embedding_bag, plain_numba, torch_csr
from benchmarks.release_ways import DOOR, OURS, sum_alone, sum_and_noise, unit_messages
from benchmarks.synthetic import synthetic_graph

from vesper.mechanism.aggregations.grid import STEPS

GRAPH = synthetic_graph(300, 2000)


@pytest.mark.parametrize("width", WIDTHS)
def test_all_contenders_compute_equal_sums(width: int) -> None:
    messages = unit_messages(GRAPH.num_nodes, width)
    expected = sum_alone(GRAPH, messages)()
    assert expected.any()
    for peer in (embedding_bag, torch_csr, plain_numba):
        assert np.array_equal(peer(GRAPH, messages)(), expected)
    noise = sum_and_noise(GRAPH, messages)() - expected / np.float32(STEPS)
    assert noise.std() == pytest.approx(2.5, rel=0.1)


def test_the_page_has_a_row_for_every_contender() -> None:
    text = report(300, 2000, 1, "python -m benchmarks.release")
    for width in WIDTHS:
        assert f"| {OURS} | {width} | 2 |" in text
        assert f"| {DOOR} | {width} |" in text
        assert f"| F.embedding_bag, float32 | {width} | 1 |" in text
    assert "| torch CSR, float32 | 128 | 2 |" in text
    assert "The limit of a sum" in text
    assert "nan" not in text
