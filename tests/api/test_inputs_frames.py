"""A fit from data frames is the same as one from arrays."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx
import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
import torch

from vesper import InputError, Vesper

if TYPE_CHECKING:
    from tests.api.conftest import Communities

NAMES = np.array([f"user {k:03d}" for k in range(600)])
SHUFFLED = np.random.default_rng(3).permutation(600)


def make() -> Vesper:
    settings = {"epochs": 1, "width": 16, "batch_size": 320}
    return Vesper(epsilon=8.0, seed=0, simulate_noise=True, settings=settings)


@pytest.fixture(scope="module")
def expected(communities: "Communities") -> Any:
    given = (communities.edges, communities.features, communities.labels)
    return make().fit(*given, train=communities.train).predict_proba(range(600))


def tables(communities: "Communities", library: str) -> dict[str, Any]:
    """Nodes, edges and labels by id, as frames of a library."""
    columns = {f"feature {k}": communities.features[:, k] for k in range(4)}
    src, dst = NAMES[communities.edges]
    edges = {"dst": dst, "src": src, "amount": np.ones(len(src))}
    train = NAMES[communities.train]
    if library == "pandas":
        return {
            "graph": pandas.DataFrame(edges),
            "features": pandas.DataFrame(columns, index=NAMES),
            "labels": pandas.Series(communities.labels, index=NAMES).iloc[SHUFFLED],
            "train": train,
        }
    make_frame: Any = polars.DataFrame if library == "polars" else pa.table
    labels = polars.Series(communities.labels)
    return {
        "graph": make_frame(edges),
        "features": make_frame({"user": NAMES, **columns}),
        "labels": labels if library == "polars" else labels.to_arrow(),
        "train": polars.Series(train) if library == "polars" else pa.array(train),
        "ids": "user",
    }


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_frames_with_ids(
    communities: "Communities", expected: Any, library: str, tmp_path: Path
) -> None:
    model = make().fit(**tables(communities, library))
    assert np.array_equal(model.predict_proba(NAMES), expected)
    truth = pandas.Series(communities.labels, index=NAMES)
    test = NAMES[communities.test]
    right = model.score(test, communities.labels[communities.test])
    assert model.score(test, truth) == right
    assert model.score(test, truth.loc[test[::-1]]) == right
    loaded = Vesper.load(model.save(tmp_path / "model.npz"))
    assert np.array_equal(loaded.predict_proba(NAMES[::-1]), expected[::-1])
    with pytest.raises(InputError, match="expected text like the ids of the nodes"):
        loaded.predict([0])


def test_labels_with_a_shuffled_index_are_aligned(
    communities: "Communities", expected: Any
) -> None:
    labels = pandas.Series(communities.labels).iloc[SHUFFLED]
    given = (communities.edges, communities.features, labels)
    model = make().fit(*given, train=communities.train)
    assert np.array_equal(model.predict_proba(range(600)), expected)


def test_networkx_and_narrow_features(communities: "Communities", expected: Any) -> None:
    graph = networkx.Graph()
    graph.add_nodes_from(NAMES.tolist())
    graph.add_edges_from(NAMES[communities.edges].T.tolist())
    train = NAMES[communities.train]
    model = make().fit(graph, communities.features, communities.labels, train=train)
    assert np.array_equal(model.predict_proba(NAMES), expected)
    narrow = torch.tensor(communities.features).bfloat16()
    rest = {"labels": communities.labels, "train": communities.train}
    one = make().fit(communities.edges, narrow, **rest)
    two = make().fit(communities.edges, narrow.float().numpy(), **rest)
    assert np.array_equal(one.predict_proba([0, 1]), two.predict_proba([0, 1]))
    sparse = torch.tensor(communities.features).to_sparse()
    model = make().fit(communities.edges, sparse, **rest)
    assert np.array_equal(model.predict_proba(range(600)), expected)


def test_a_later_graph_is_matched_by_id(communities: "Communities") -> None:
    """In another order of rows, each node has the prediction that it had, but for rounding."""
    given = tables(communities, "pandas")
    model = make().set_params(epsilon=math.inf).fit(**given)
    edges, features = given["graph"], given["features"]
    expected = model.on_graph(edges, features).predict_proba(NAMES)
    shuffled = model.on_graph(edges, features.iloc[SHUFFLED])
    assert np.allclose(shuffled.predict_proba(NAMES), expected, atol=1e-4)
    with pytest.raises(InputError, match="expected text as ids as in training, got node numbers"):
        model.on_graph(communities.edges, communities.features)
    with pytest.raises(InputError, match="ends of edges are not ids of nodes"):
        model.on_graph(edges, features.iloc[:300])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ("account", "expected a column of the features or a list of ids, got 'account'; columns"),
        (["a"], "expected one id per row of the features, which are 600, got 1"),
    ],
)
def test_unusable_ids_are_refused(communities: "Communities", ids: Any, message: str) -> None:
    given = tables(communities, "pandas") | {"ids": ids}
    with pytest.raises(InputError, match=message):
        make().fit(**given)
