"""Shares of edges from sketches, and which names of a ledger share edges."""

import random

import pytest

from vesper.errors import InputError
from vesper.privacy.ledger.overlap import (
    ACCEPTED_KIND,
    EMPTY_SLOT,
    SLOT_DIGITS,
    GraphVersion,
    Overlap,
    overlaps_of,
    shared_edges,
    version_of,
)
from vesper.privacy.ledger.reader import Entry

BINS = 256


def version(name: str, *, kept: float = 1.0) -> GraphVersion:
    """A version whose sketch agrees in this share of its bins with that of the same name."""
    rng = random.Random(name)
    bins = [f"{rng.randrange(1, 16**SLOT_DIGITS):0{SLOT_DIGITS}x}" for _ in range(BINS)]
    for k in range(round(BINS * kept), BINS):
        bins[k] = f"{random.Random(f'{name} {kept} {k}').randrange(1, 16**SLOT_DIGITS):08x}"
    return GraphVersion(num_nodes=4, ids="i", edges=f"{name} {kept}", sketch="".join(bins))


def entry(graph: str, facts: dict[str, object]) -> Entry:
    return Entry(1, 0.0, graph, "", facts, 0.0, b"")


def test_equal_edges_are_shared_whatever_the_sketch_says() -> None:
    one = version("a")
    other = GraphVersion(num_nodes=9, ids="j", edges=one.edges, sketch="")
    assert shared_edges(one, other) == shared_edges(other, one) == 1.0


@pytest.mark.parametrize(
    ("kept", "share"),
    [(0.999, 1.0), (255 / 256, 510 / 511), (0.5, 2 / 3), (1 / 3, 0.5), (0.0, 0.0)],
)
def test_the_share_follows_from_the_agreement_of_bins(kept: float, share: float) -> None:
    found = shared_edges(version("a"), version("a", kept=kept))
    assert found == pytest.approx(share, abs=0.01)
    assert found < 1  # equal sketches are not equal edges


def test_bins_that_are_empty_in_both_do_not_count() -> None:
    def sparse(edges: str, slots: list[str]) -> GraphVersion:
        sketch = "".join(slots) + EMPTY_SLOT * (BINS - len(slots))
        return GraphVersion(num_nodes=4, ids="i", edges=edges, sketch=sketch)

    three = ["1" * SLOT_DIGITS, "2" * SLOT_DIGITS, "3" * SLOT_DIGITS]
    assert shared_edges(sparse("a", three), sparse("b", three[:2])) == pytest.approx(4 / 5)
    assert shared_edges(sparse("a", []), sparse("b", [])) == 0.0
    assert shared_edges(sparse("a", []), sparse("b", three)) == 0.0


def test_the_largest_share_of_any_two_versions_counts_and_small_ones_do_not() -> None:
    entries = [
        entry("new", version("a").facts),
        entry("new", version("z").facts),
        entry("old", version("c").facts),
        entry("old", version("a", kept=0.8).facts),
        entry("copy", version("z").facts),
        entry("unrelated", version("b").facts),
        entry("slightly", version("a", kept=0.2).facts),
        entry("never opened", {"kind": "graph", "num_nodes": 4}),
    ]
    found = overlaps_of("new", entries)
    assert [(each.other, each.accepted_by) for each in found] == [("old", None), ("copy", None)]
    assert found[0].share == pytest.approx(2 * 0.8 / 1.8, abs=0.01)
    assert found[1].share == 1.0
    assert [each.other for each in overlaps_of("old", entries)] == ["new"]
    assert overlaps_of("unrelated", entries) == overlaps_of("no such graph", entries) == []


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_an_accepted_overlap_names_who_accepted_it_from_both_sides(order: tuple[str, str]) -> None:
    graph, other = order
    entries = [entry(name, version("a").facts) for name in ("one", "two", "three")]
    entries.append(entry(graph, {"kind": ACCEPTED_KIND, "other": other, "by": "J. Doe"}))
    assert overlaps_of("one", entries) == [
        Overlap(other="two", share=1.0, accepted_by="J. Doe"),
        Overlap(other="three", share=1.0, accepted_by=None),
    ]


def test_a_version_is_read_back_and_anything_else_is_refused() -> None:
    facts = version("a").facts
    assert version_of(facts) == version("a")
    for name, value in (("ids", 3), ("edges", None), ("sketch", []), ("num_nodes", 0)):
        with pytest.raises(InputError, match="Expected the version of a graph"):
            version_of({**facts, name: value})
