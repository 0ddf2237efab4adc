"""From arrays to the tables of the two parties."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from vesper import Vesper
from vesper.api.inputs import FitInputs, prepare_inputs
from vesper.api.targets import ClassTargets
from vesper.errors import InputError

if TYPE_CHECKING:
    from tests.api.conftest import Communities

N = 40
PAIRS = np.stack([np.arange(N), (np.arange(N) + 1) % N])
FEATURES = np.random.default_rng(0).normal(size=(N, 3))
LABELS = np.where(np.arange(N) < 30, "good", "bad")


def inputs(**changes: Any) -> FitInputs:
    given: dict[str, Any] = {"features": FEATURES, "labels": LABELS, "train": range(N)}
    given |= {"graph": PAIRS, "validation": None, "targets": ClassTargets(), "seed": 0, **changes}
    return prepare_inputs(given.pop("graph"), given.pop("features"), given.pop("labels"), **given)


def test_both_parties_get_their_tables() -> None:
    made = inputs(train=np.arange(5, 35), validation=[0, 39])
    assert made.data.graph.num_nodes == N
    assert made.data.features.dtype == np.float32
    assert made.distinct.tolist() == ["bad", "good"]
    assert made.labels.ids.take(made.labels.rows("val")) == [0, 39]
    assert made.labels.labels[made.labels.rows("val")].tolist() == [1, 0]
    assert len(made.labels.rows("train")) == 30
    assert len(made.labels.rows("test")) == 0


def test_a_fifth_of_each_class_is_held_out() -> None:
    made = inputs()
    codes = made.labels.labels[made.labels.rows("val")]
    assert np.bincount(codes).tolist() == [2, 6]
    assert not set(made.validation) & set(made.labels.ids.take(made.labels.rows("train")))
    assert inputs().validation.tolist() == made.validation.tolist()
    assert inputs(seed=1).validation.tolist() != made.validation.tolist()


def test_a_graph_that_holds_everything() -> None:
    mask = torch.arange(N) % 2 == 0
    data = SimpleNamespace(
        edge_index=torch.from_numpy(PAIRS),
        num_nodes=N,
        x=torch.from_numpy(FEATURES),
        y=torch.arange(N) % 3,
        train_mask=mask,
        val_mask=~mask,
    )
    made = inputs(graph=data, features=None, labels=None, train=None)
    assert made.validation.tolist() == list(range(1, N, 2))
    assert made.distinct.tolist() == [0, 1, 2]
    chosen = inputs(graph=data, features=None, labels=None, train=range(20))
    assert set(chosen.validation) <= set(range(20)), "the mask of the graph is not used"


def test_bytes_stay_bytes() -> None:
    assert inputs(features=FEATURES > 0).data.features.dtype == np.uint8
    assert inputs(features=(FEATURES * 9).astype(int)).data.features.dtype == np.float32
    assert inputs(features=FEATURES.tolist()).data.features.dtype == np.float32
    mixed = np.column_stack([FEATURES.astype(object), (FEATURES[:, 0] > 0).astype(object)])
    assert inputs(features=mixed).data.features[:, -1].tolist() == (FEATURES[:, 0] > 0).tolist()


def features_with(value: float) -> Any:
    features = FEATURES.copy()
    features[[3, 5], 1] = value
    return features


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": FEATURES[:, 0]}, r"features: expected shape \(40, num_features\)"),
        ({"features": None, "graph": np.zeros((2, 0), int)}, "expected features with bare edges"),
        ({"features": FEATURES[:, :0]}, r"got \(40, 0\)"),
        ({"features": np.full((N, 1), "x")}, "features: expected numbers"),
        ({"features": np.full((N, 1), "1", dtype=object)}, "features: expected numbers, got obj"),
        ({"features": features_with(np.nan)}, r"2 rows contain NaN .* \(first 2: node 3, node 5\)"),
        ({"features": features_with(np.inf)}, "2 rows contain NaN or infinite"),
        ({"features": features_with(1e300)}, "2 rows contain values beyond 3.4e38 .* another unit"),
        ({"labels": None}, r"labels: expected .* found in neither; pass labels="),
        ({"train": None}, "train: expected as an argument or in the graph"),
        ({"train": range(20)}, r"at least two classes among train and validation, got 1"),
        ({"train": range(35), "validation": [36, 37]}, "validation: expected nodes of at least"),
        ({"train": range(30), "validation": [1, 36]}, r"1 nodes are also in train \(first 1: 1\)"),
        ({"train": [0, 39]}, "train: expected nodes of at least two|validation: expected"),
    ],
)
def test_unusable_input_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        inputs(**changes)


def test_the_order_of_nodes_does_not_matter(communities: "Communities") -> None:
    given = (communities.edges, communities.features, communities.labels)
    backwards = communities.train[::-1]
    for nodes in ({"train": backwards}, {"train": backwards[100:], "validation": backwards[:100]}):
        ascending = {name: np.sort(which) for name, which in nodes.items()}
        models = [
            Vesper(
                epsilon=8.0, seed=0, simulate_noise=True, settings={"epochs": 2, "width": 8}
            ).fit(*given, **which)
            for which in (nodes, ascending)
        ]
        first, second = (model.predict_proba(communities.test) for model in models)
        assert np.array_equal(first, second)
