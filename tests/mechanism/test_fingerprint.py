import hashlib
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from vesper.graph.edges.edge_relation import toggle_edge
from vesper.graph.graph import Graph
from vesper.graph.ids import Ids
from vesper.mechanism import fingerprint as module
from vesper.mechanism.fingerprint import fingerprint

KEY = b"k" * 32
GRAPH = Graph.from_edges(5, [(0, 1), (1, 2), (3, 4)])


def test_it_does_not_depend_on_how_edges_are_stored() -> None:
    assert GRAPH.neighbors.dtype == np.int32
    names = {
        fingerprint(Graph(GRAPH.indptr.astype(rows), GRAPH.neighbors.astype(ends)), key=KEY)
        for rows in ("<i8", ">i8", "<i4")
        for ends in ("<i4", "<i8", ">i4")
    }
    assert names == {fingerprint(GRAPH, key=KEY)}
    strided = Graph(np.repeat(GRAPH.indptr, 2)[::2], np.repeat(GRAPH.neighbors, 2)[::2])
    assert fingerprint(strided, key=KEY) == fingerprint(GRAPH, key=KEY)


def test_it_does_not_depend_on_the_chunk_size(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fingerprint(GRAPH, key=KEY)
    monkeypatch.setattr(module, "CHUNK", 1)
    assert fingerprint(replace(GRAPH), key=KEY) == whole


def test_it_is_the_keyed_digest_of_count_rows_and_ends() -> None:
    # Written out, so that names in old ledgers stay valid.
    digest = hashlib.blake2b(key=KEY, digest_size=16)
    digest.update((5).to_bytes(8, "little"))
    digest.update(np.array([0, 1, 3, 4, 5, 6], dtype="<i8").tobytes())
    digest.update(np.array([1, 0, 2, 1, 4, 3], dtype="<i4").tobytes())
    assert fingerprint(GRAPH, key=KEY) == digest.hexdigest()


@pytest.mark.parametrize("chunk", [1, 5, 1 << 22])
def test_integer_ids_count_as_text(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids as integers and as text: node numbers differ, graph and name are the same."""
    monkeypatch.setattr(module, "CHUNK", chunk)
    rng = np.random.default_rng(0)
    numbers = np.unique(rng.integers(-1500, 1500, 200))
    texts = sorted(map(str, numbers.tolist()))
    place = {text: k for k, text in enumerate(texts)}
    pairs = rng.integers(0, len(numbers), (600, 2)).tolist()
    by_number = Graph.from_edges(len(numbers), pairs)
    by_text = Graph.from_edges(
        len(numbers), [(place[str(numbers[u])], place[str(numbers[v])]) for u, v in pairs]
    )
    named = replace(by_number, ids=Ids(pa.array(numbers)))
    as_text = replace(by_text, ids=Ids(pa.array(texts, type=pa.large_string())))
    assert fingerprint(named, key=KEY) == fingerprint(as_text, key=KEY)
    assert fingerprint(named, key=KEY) != fingerprint(by_number, key=KEY)


def test_nodes_without_ids_are_identified_by_their_numbers() -> None:
    graph = Graph.from_edges(30, [(0, 10), (9, 29), (2, 3)])
    named = replace(graph, ids=Ids(pa.array(np.arange(30))))
    assert fingerprint(graph, key=KEY) == fingerprint(named, key=KEY)


def test_edges_nodes_and_key_change_it() -> None:
    names = {
        fingerprint(GRAPH, key=KEY),
        fingerprint(GRAPH, key=b"l" * 32),
        fingerprint(toggle_edge(GRAPH, (0, 4)), key=KEY),
        fingerprint(Graph.from_edges(6, [(0, 1), (1, 2), (3, 4)]), key=KEY),
    }
    assert len(names) == 4


def test_a_graph_is_digested_once_per_key_while_it_is_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    digested_keys: list[bytes] = []
    digest = module._digest

    def recorded_digest(graph: Graph, key: bytes) -> str:
        digested_keys.append(key)
        return digest(graph, key)

    monkeypatch.setattr(module, "_digest", recorded_digest)
    graph, other = replace(GRAPH), b"o" * 32
    names = [fingerprint(graph, key=key) for key in (KEY, other, KEY, other)]
    assert names[:2] == names[2:]
    assert names[0] != names[1]
    assert digested_keys == [KEY, other]
    assert fingerprint(replace(graph), key=KEY) == names[0]
    assert digested_keys == [KEY, other, KEY]
    known = len(module._known)
    del graph
    assert len(module._known) == known - 1
