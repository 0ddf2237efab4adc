"""A fitted model on a later graph: the same weights, another budget, charged once."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from vesper import BudgetError, InputError, Vesper
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.ledger_file import open_to_read

if TYPE_CHECKING:
    from tests.api.conftest import Communities


def later_of(communities: "Communities", nodes: int = 660) -> tuple[Any, Any, Any]:
    """The same nodes and some new ones, with other edges of the same kind."""
    rng = np.random.default_rng(7)
    groups = np.arange(nodes) % 3
    src = rng.integers(0, nodes, size=10 * nodes)
    same = rng.integers(0, nodes // 3, size=10 * nodes) * 3 + groups[src]
    features = rng.normal(size=(nodes, 4)) + 0.5 * np.eye(4)[groups]
    return np.stack([src, same]), features, np.array(["ant", "bee", "cat"])[groups]


def test_the_model_predicts_a_later_graph(communities: "Communities", simulated: Vesper) -> None:
    edges, features, labels = later_of(communities)
    before = simulated.predict_proba([0])
    later = simulated.on_graph(edges, features)
    assert later.predict_proba(range(660)).shape == (660, 3)
    assert later.score(range(600, 660), labels) > 60
    assert later.stage_ == simulated.stage_ > 0
    assert later.privacy_.simulated
    assert np.array_equal(simulated.predict_proba([0]), before), "the model is not changed"
    again = simulated.on_graph(edges, features)
    assert np.array_equal(again.predict_proba([3]), later.predict_proba([3]))


def test_it_is_charged_to_the_later_graph_alone_and_once(
    communities: "Communities", tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.sqlite"
    model = communities.fit(ledger=ledger, graph_name="october", settings={"epochs": 4})
    edges, features, _ = later_of(communities)
    with pytest.raises(InputError, match=r"expected a name for the graph .*with graph_name"):
        model.on_graph(edges, features)
    with pytest.raises(BudgetError, match="does not allow this"):
        model.on_graph(edges, features, graph_name="october")

    def spent() -> dict[str, tuple[float, int]]:
        with closing(open_to_read(ledger)) as reader:
            return {each.graph: (each.spent_epsilon(), each.releases) for each in accounts(reader)}

    october = spent()["october"]
    later = model.on_graph(edges, features, graph_name="november")
    assert later.privacy_.is_private
    assert spent()["october"] == october
    assert spent()["november"][1] == later.stage_ > 0
    assert 0 < spent()["november"][0] <= 8
    with pytest.warns(UserWarning, match="graph 'november' has other edges than when"):
        model.on_graph(edges[:, 100:], features, graph_name="november")
    again = model.on_graph(edges, features, graph_name="november")
    assert spent()["november"][1] == later.stage_, "the same again is free"
    assert np.array_equal(again.predict_proba(range(660)), later.predict_proba(range(660)))
    loaded = Vesper.load(later.save(tmp_path / "later.npz"))
    assert np.array_equal(loaded.predict_proba(range(660)), later.predict_proba(range(660)))


def test_a_loaded_model_predicts_a_later_graph(
    communities: "Communities", simulated: Vesper, tmp_path: Path
) -> None:
    edges, features, _ = later_of(communities)
    loaded = Vesper.load(simulated.save(tmp_path / "model.npz"))
    expected = simulated.on_graph(edges, features).predict_proba(range(660))
    assert np.array_equal(loaded.on_graph(edges, features).predict_proba(range(660)), expected)


def test_a_method_without_edges_needs_no_name(communities: "Communities", tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    model = communities.fit(method="mlp", ledger=ledger, settings={"epochs": 1})
    edges, features, _ = later_of(communities)
    later = model.on_graph(edges, features)
    assert later.privacy_.plan == "edge-free"
    same = model.on_graph(communities.edges, communities.features)
    assert np.allclose(same.predict_proba(range(600)), model.predict_proba(range(600)), atol=1e-6)


def test_other_features_are_refused(communities: "Communities", simulated: Vesper) -> None:
    edges, features, _ = later_of(communities)
    with pytest.raises(InputError, match=r"expected the 4 columns of training .*, got 3"):
        simulated.on_graph(edges, features[:, :3])
    with pytest.raises(InputError, match="expected features with bare edges"):
        simulated.on_graph(edges)
    given = (communities.edges, communities.features > 0, communities.labels)
    settings = {"epochs": 1, "width": 8}
    model = Vesper(seed=0, simulate_noise=True, settings=settings)
    model.fit(*given, train=communities.train)
    assert model.on_graph(edges, features > 0).predict_proba([0]).shape == (1, 3)
    with pytest.raises(InputError, match="expected bytes or booleans as in training"):
        model.on_graph(edges, features)
    with pytest.raises(InputError, match="not trained yet"):
        Vesper().on_graph(edges, features)
