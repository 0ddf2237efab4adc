"""Shares are shares, and edge ends have more neighbours than nodes."""

import numpy as np
import pytest

from vesper.study.paper_nodes import PAPER_NODES, concentrated_shares


@pytest.mark.parametrize("name", ["products", "reddit"])
def test_all_shares_sum_to_one(name: str) -> None:
    nodes = PAPER_NODES[name]
    degrees, ends = (
        shares(max_degree=20) for shares in (nodes.degree_shares, nodes.edge_end_shares)
    )
    for shares in (degrees, ends, *nodes.class_shares().values()):
        assert shares.sum() == pytest.approx(1.0)
    at = np.arange(21)
    assert (at * ends).sum() > (at * degrees).sum()
    assert nodes.class_shares()["assumed"].max() == pytest.approx(nodes.largest_share, abs=0.01)


def test_concentrated_shares_are_as_few_as_possible() -> None:
    assert concentrated_shares(0.5).tolist() == [0.5, 0.5]
    assert len(concentrated_shares(0.194)) == 6
