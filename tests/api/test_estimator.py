"""`Vesper` from the outside: fit, predict, cost and reports."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from vesper import InputError, Vesper

if TYPE_CHECKING:
    from tests.api.conftest import Communities


def test_the_graph_helps(communities: "Communities", simulated: Vesper) -> None:
    alone = communities.fit(seed=0, simulate_noise=True, method="mlp")
    truth = communities.labels[communities.test]
    assert simulated.score(communities.test, truth) > alone.score(communities.test, truth) + 10
    assert alone.privacy_.plan == "edge-free"
    assert (alone.privacy_.epsilon, alone.privacy_.best_guess) == (0.0, 0.5)


def test_what_is_learned(communities: "Communities", simulated: Vesper) -> None:
    assert simulated.classes_.tolist() == ["ant", "bee", "cat"]
    assert (simulated.metric_, simulated.n_features_in_) == ("accuracy", 4)
    assert simulated.stage_ in (0, 1, 2)
    probabilities = simulated.predict_proba(communities.test)
    assert probabilities.shape == (200, 3)
    assert np.allclose(probabilities.sum(axis=1), 1)
    chosen = simulated.predict(communities.test)
    assert chosen.tolist() == simulated.classes_[probabilities.argmax(axis=1)].tolist()
    right = 100 * float((chosen == communities.labels[communities.test]).mean())
    assert simulated.score(communities.test, communities.labels[communities.test]) == right
    everywhere = dict(enumerate(communities.labels))
    assert simulated.score(communities.test, everywhere) == right
    assert simulated.score(communities.test, communities.labels) == right
    assert simulated.predict_proba([]).shape == (0, 3)


def test_predictions_reproduce_the_validation_metric(communities: "Communities") -> None:
    train, validation = communities.train[:300], communities.train[300:]
    model = Vesper(epsilon=8.0, seed=0, simulate_noise=True, settings={"epochs": 3, "width": 16})
    given = (communities.edges, communities.features, communities.labels)
    model.fit(*given, train=train, validation=validation)
    truth = communities.labels[validation]
    assert model.score(validation, truth) == pytest.approx(model.validation_)


def test_simulated_noise_repeats_bit_for_bit_and_is_not_private(
    communities: "Communities", simulated: Vesper
) -> None:
    again = communities.fit(seed=0, simulate_noise=True)
    nodes = np.arange(600)
    assert np.array_equal(again.predict_proba(nodes), simulated.predict_proba(nodes))
    assert simulated.privacy_.epsilon == 8.0
    assert not simulated.privacy_.is_private
    assert simulated.privacy_.best_guess == 1.0
    assert "not private" in simulated.privacy_.noise
    assert simulated.privacy_.verdict.startswith("Not private")


def test_nothing_simulated_is_called_certified_without_saying_so(
    simulated: Vesper, tmp_path: Path
) -> None:
    privacy = simulated.privacy_
    assert privacy.plan == "certified (simulated)"
    page = simulated.report(tmp_path / "report.html").read_text()
    for text in (repr(privacy), privacy.verdict, page):
        assert "certified" not in text or "simulated" in text
    assert "epsilon, if noise were not simulated" in page
    assert "certified epsilon" not in page


def test_without_simulation_noise_is_real(communities: "Communities") -> None:
    fast = {"epochs": 1}
    one, two = communities.fit(settings=fast), communities.fit(settings=fast)
    privacy = one.privacy_
    assert privacy.is_private
    assert (privacy.epsilon, privacy.delta, privacy.releases) == (8.0, 1e-4, 3)
    assert "operating system" in privacy.noise
    assert "this fit alone" in privacy.covers
    assert privacy.run_charges is not None
    assert 0.5 < privacy.best_guess < 0.9
    nodes = np.arange(600)
    assert not np.array_equal(one.predict_proba(nodes), two.predict_proba(nodes))


def test_no_privacy_is_reported(communities: "Communities") -> None:
    open_ = communities.fit(epsilon=math.inf, settings={"epochs": 1})
    assert open_.privacy_.epsilon == math.inf
    assert not open_.privacy_.is_private
    assert open_.privacy_.verdict == "Not private: edges were used without noise."


def test_the_metric_of_two_classes_is_roc_auc(communities: "Communities") -> None:
    model = Vesper(seed=0, simulate_noise=True, settings={"epochs": 2, "width": 16})
    is_ant = communities.labels == "ant"
    model.fit(communities.edges, communities.features, is_ant, train=communities.train)
    assert model.metric_ == "roc_auc"
    assert model.classes_.tolist() == [False, True]
    assert 50 < model.score(communities.test, is_ant[communities.test]) <= 100


def test_a_refused_fit_keeps_the_old_model(communities: "Communities", simulated: Vesper) -> None:
    before = simulated.predict_proba([0])
    with pytest.raises(InputError):
        simulated.fit(communities.edges, communities.features, communities.labels, train=[0])
    assert np.array_equal(simulated.predict_proba([0]), before)


def test_progress_is_reported(communities: "Communities") -> None:
    seen: list[tuple[str, int, int]] = []

    def progress(task: str, done: int, total: int, note: str = "") -> None:
        seen.append((task, done, total))

    communities.fit(seed=0, simulate_noise=True, progress=progress, settings={"epochs": 1})
    assert seen[-1][0] == "training"
    assert seen[-1][1] == seen[-1][2]


@pytest.mark.parametrize(
    ("ids", "labels", "message"),
    [
        ([0, 600], ["ant", "bee"], "ids: expected node numbers from 0 to 599, 1 are outside"),
        ([], [], "ids: expected at least one node"),
        ([0, 1], None, "labels: expected one label per id"),
        ([0, 1], ["ant"], r"shape \(600,\), got \(1,\)"),
        ([0, 1], ["ant", "dog"], r"1 labels belong to classes .* \(first 1: dog of node 1\)"),
    ],
)
def test_unusable_test_nodes_are_refused(
    simulated: Vesper, ids: Any, labels: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        simulated.score(ids, labels)


class Series:
    """Values with an index, as a pandas column: has keys, but is not a mapping."""

    def __init__(self, values: Any) -> None:
        self._values = np.asarray(values)

    def keys(self) -> range:
        return range(len(self._values))

    def __getitem__(self, key: int) -> Any:
        return self._values[key]

    def __len__(self) -> int:
        return len(self._values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._values


def test_labels_of_a_series_are_in_the_order_of_ids(
    communities: "Communities", simulated: Vesper
) -> None:
    all_nodes = np.random.default_rng(0).permutation(len(communities.labels))
    for ids in (communities.test, all_nodes):
        labels = communities.labels[ids]
        expected = simulated.score(ids, labels)
        assert simulated.score(ids, Series(labels)) == expected
        assert simulated.score(ids, labels[:, None]) == expected


def test_a_report_needs_a_path_and_nodes_for_its_labels(
    communities: "Communities", simulated: Vesper, tmp_path: Path
) -> None:
    nowhere: Any = None
    with pytest.raises(InputError, match="path: expected the path of the page, got NoneType"):
        simulated.report(nowhere)
    with pytest.raises(InputError, match="ids: expected the nodes of the labels"):
        simulated.report(tmp_path / "page.html", labels=communities.labels)


def test_a_fit_restores_the_state_of_torch(communities: "Communities") -> None:
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    torch.set_num_threads(1)
    try:
        communities.fit(seed=0, simulate_noise=True, settings={"epochs": 1})
        assert torch.get_num_threads() == 1
        assert torch.equal(torch.get_rng_state(), state)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": -1.0}, r"setting 'privacy.epsilon': .* got -1"),
        ({"epsilon": None}, "expected a number, or math.inf for no privacy, got None"),
        ({"aggregator": "gcn", "method": "gap"}, "aggregator: expected .* for method 'gap'"),
        ({"aggregator": "sage"}, r"setting 'privacy.aggregator': .* got 'sage'"),
        ({"settings": {"task": "regression"}}, "expected task 'classification'"),
        ({"method": "vespre"}, "expected one of certified"),
        ({"settings": {"hops": 2}}, r"settings: .* got 'hops'; write Vesper\(hops=...\)"),
        ({"settings": {"run.seed": 2}}, r"write Vesper\(seed=...\)"),
        ({"simulate_noise": 1}, "simulate_noise: expected True or False, got 1"),
        ({"settings": {1: 3}}, "settings: expected names of settings as keys, got 1"),
        ({"ledger": 5}, "ledger: expected a path, got int"),
        ({"settings": {"epoch": 2}}, "unknown setting 'epoch'; did you mean 'run.epochs'"),
    ],
)
def test_wrong_parameters_are_refused(
    communities: "Communities", parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        communities.fit(**parameters)


def test_before_the_fit() -> None:
    model = Vesper()
    for use in (model.predict, model.predict_proba):
        with pytest.raises(InputError, match=r"not trained yet; call fit\(graph"):
            use([0])
    with pytest.raises(AttributeError, match=r"privacy_ is not available yet; call fit"):
        str(model.privacy_)


def test_settings_are_a_mapping() -> None:
    given: list[Any] = ["epochs=3", ["epochs=3"]]
    for wrong in given:
        with pytest.raises(InputError, match="settings: expected a mapping"):
            Vesper(settings=wrong).fit(np.zeros((2, 0), int))


def test_one_class_has_no_roc_auc() -> None:
    labels = np.arange(60) % 2
    edges = np.stack([np.arange(60), (np.arange(60) + 2) % 60])
    model = Vesper(seed=0, simulate_noise=True, settings={"epochs": 2, "width": 8})
    model.fit(edges, np.eye(2)[labels], labels, train=range(40))
    assert model.score([40, 41], labels) >= 0
    with pytest.raises(InputError, match="at least two different values among 2"):
        model.score([40, 42], labels)
