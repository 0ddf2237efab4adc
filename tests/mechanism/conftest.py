"""Graphs on which one edge moves the most, shared by the tests of the claims."""

from collections.abc import Callable

import pytest

from vesper.graph.graph import Graph


@pytest.fixture
def double_star() -> Callable[[int], Graph]:
    """Joined centres 0 and 1 with k leaves each: 2 .. k + 1 at centre 0, the rest at centre 1."""

    def build(leaves: int) -> Graph:
        first = [(0, 2 + k) for k in range(leaves)]
        second = [(1, 2 + leaves + k) for k in range(leaves)]
        return Graph.from_edges(2 + 2 * leaves, [(0, 1), *first, *second])

    return build
