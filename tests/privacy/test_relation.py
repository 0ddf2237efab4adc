import pytest

from vesper.errors import InputError
from vesper.privacy.events import ClippedRelease, GaussianRelease
from vesper.privacy.relation import EdgeRelation, NodeRelation, Relation, relation_of


@pytest.mark.parametrize("relation", [EdgeRelation(), NodeRelation(max_degree=9, row_norm=3)])
def test_relations_are_read_back_from_their_facts(relation: Relation) -> None:
    assert relation_of({"kind": "budget", **relation.facts}) == relation


def test_rows() -> None:
    assert EdgeRelation().rows == 2
    assert NodeRelation(max_degree=9, row_norm=3).rows == 18


def test_events_that_each_relation_admits() -> None:
    node = NodeRelation(max_degree=9, row_norm=3)
    assert EdgeRelation().admits(GaussianRelease(noise_std=1.0).facts)
    assert not node.admits(GaussianRelease(noise_std=1.0).facts)
    assert node.admits(ClippedRelease(noise_std=1.0, row_norm=3).facts)
    assert not node.admits(ClippedRelease(noise_std=1.0, row_norm=3.01).facts)


def test_invalid_relations_are_refused() -> None:
    for facts in ({}, {"relation": "path"}, {"relation": "node", "max_degree": 3}):
        with pytest.raises(InputError, match="edges, nodes or labels"):
            relation_of(facts)
    with pytest.raises(InputError, match="row_norm"):
        NodeRelation(max_degree=4, row_norm=5.0)
    with pytest.raises(InputError, match="max_degree"):
        NodeRelation(max_degree=0, row_norm=1.0)


def test_clipping_beyond_what_floating_point_allows_is_refused() -> None:
    assert NodeRelation(max_degree=1 << 20, row_norm=1 << 12).rows == (1 << 20) + (1 << 24)
    with pytest.raises(InputError, match="at most 4096"):
        NodeRelation(max_degree=1 << 20, row_norm=(1 << 12) + 1)
