"""Graphs on which an edge does the most, shared by the tests of the claims."""

from collections.abc import Callable

import pytest

from vesper.graph.graph import Graph


@pytest.fixture
def double_star() -> Callable[[int], Graph]:
    """Centres 0 and 1, joined, each with so many leaves of its own: 2 .. k + 1, then the rest."""

    def build(leaves: int) -> Graph:
        first = [(0, 2 + k) for k in range(leaves)]
        second = [(1, 2 + leaves + k) for k in range(leaves)]
        return Graph.from_edges(2 + 2 * leaves, [(0, 1), *first, *second])

    return build
