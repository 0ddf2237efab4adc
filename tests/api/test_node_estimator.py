"""Searches and cross-validation of scikit-learn over ids of nodes."""

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vesper import InputError, Vesper, VesperRegressor
from vesper.api.node_estimator import NodeEstimator

if TYPE_CHECKING:
    from tests.api.conftest import Communities


def on(communities: "Communities", **parameters: Any) -> NodeEstimator:
    settings = {"epochs": 1, "width": 8}
    model = Vesper(seed=0, simulate_noise=True, settings=settings, **parameters)
    return model.for_nodes(communities.edges, communities.features)


def test_a_search_over_parameters(communities: "Communities") -> None:
    train, labels = communities.train, communities.labels
    search = GridSearchCV(on(communities), {"epsilon": [0.5, 8.0]}, cv=2)
    search.fit(train, labels[train])
    assert search.best_params_ == {"epsilon": 8.0}
    assert 0.5 < search.best_score_ <= 1
    assert search.best_estimator_.privacy_.plan == "certified (simulated)"
    assert search.predict(communities.test[:3]).shape == (3,)
    nested = GridSearchCV(on(communities), {"estimator__hops": [1]}, cv=2)
    assert nested.fit(train, labels[train]).best_params_ == {"estimator__hops": 1}


def test_cross_validation(communities: "Communities") -> None:
    train = communities.train
    model = on(communities, epsilon=8.0)
    truth = communities.labels[train]
    assert cross_val_score(model, train, truth, cv=2).min() > 0.4
    scores = cross_val_score(model, train[:, None], truth, cv=2, scoring="roc_auc_ovr")
    assert scores.min() > 0.6
    frame = pandas.DataFrame({"node": train})
    assert cross_val_score(model, frame, truth, cv=2).min() > 0.4


def test_rows_of_a_graph_cannot_be_split(communities: "Communities") -> None:
    rows = (communities.features, communities.labels)
    with pytest.raises(InputError, match=r"use Vesper\(...\).for_nodes\(graph, features\)"):
        cross_val_score(Vesper(), *rows, error_score="raise")
    with pytest.raises(InputError, match=r"use Vesper\(...\).for_nodes\(graph, features\)"):
        make_pipeline(StandardScaler(), Vesper()).fit(*rows)
    with pytest.raises(InputError, match="X has the ids of the nodes"):
        on(communities).fit(*rows)


def test_clones_share_the_graph(communities: "Communities") -> None:
    model = on(communities)
    copied = clone(model)
    assert copied.graph is model.graph
    assert copied.estimator is not model.estimator
    assert copied.set_params(epsilon=2.0).estimator.epsilon == 2.0
    assert model.estimator.epsilon == 4.0
    assert is_classifier(model)
    assert is_regressor(VesperRegressor().for_nodes(communities.edges, communities.features))
    assert not hasattr(VesperRegressor().for_nodes(communities.edges), "predict_proba")
    assert "SharedGraph(ndarray)" in repr(model)
    assert pickle.loads(pickle.dumps(model)).estimator.epsilon == 4.0


def test_before_the_fit(communities: "Communities") -> None:
    model = on(communities)
    with pytest.raises(InputError, match=r"not trained yet; call fit\(ids, labels\)"):
        model.predict([0])
    assert not hasattr(model, "classes_")
    with pytest.raises(InputError, match="expected one per id, which are 2, got 1"):
        model.fit([0, 1], ["ant"])
    with pytest.raises(InputError, match="unknown parameter 'graph_nmae'"):
        model.set_params(graph_nmae="one")


def test_a_regressor_is_searched_as_well() -> None:
    numbers = np.arange(60) / 10
    edges = np.stack([np.arange(60), (np.arange(60) + 1) % 60])
    settings = {"epochs": 2, "width": 8}
    model = VesperRegressor(seed=0, simulate_noise=True, settings=settings)
    ids = np.array([f"n{k}" for k in range(60)])
    named = model.for_nodes(ids[edges], numbers[:, None], ids=ids)
    assert named.fit(ids[::2], numbers[::2]).predict(ids[1::2]).shape == (30,)
    assert np.isfinite(cross_val_score(named, ids, numbers, cv=2)).all()
