import pytest

from vesper.errors import InputError
from vesper.privacy.ledger.graph_name import SIMULATED_GRAPH, expect_graph_name, graph_name


@pytest.mark.parametrize("name", ["g", "payments-2026-11", "a.b_c", "7", "x" * 64, SIMULATED_GRAPH])
def test_names_are_returned_as_they_are(name: str) -> None:
    assert graph_name(name) == expect_graph_name(name) == name


@pytest.mark.parametrize(
    "name", ["", " g", "g\n", "-g", ".g", "a b", "a/b", "größe", "x" * 65, "../ledger"]
)
def test_other_texts_are_refused_with_an_example(name: str) -> None:
    with pytest.raises(ValueError, match="at most 64 letters, digits"):
        graph_name(name)
    with pytest.raises(InputError, match=r"name of the graph: expected .*'payments-2026-11', got"):
        expect_graph_name(name)


def test_a_missing_name_is_refused_with_the_way_to_give_it() -> None:
    with pytest.raises(InputError, match=r"got none; give one with --graph NAME"):
        expect_graph_name(None)
    with pytest.raises(InputError, match=r"give one with \[party\] graph.*every version"):
        expect_graph_name(None, how="[party] graph")
