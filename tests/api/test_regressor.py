"""`VesperRegressor` from the outside: numbers predicted from neighbours, in their own units."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper import InputError, Vesper, VesperRegressor

SMALL = {"epochs": 8, "width": 16, "batch_size": 320, "learning_rate": 0.03, "members": 1}
NODES, TRAIN, TEST = 600, np.arange(400), np.arange(400, 600)


def make_graph() -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Neighbours have similar numbers, far from 0; features are weakly informative."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=NODES)
    pairs = rng.integers(0, NODES, (2, 60_000))
    close = np.abs(hidden[pairs[0]] - hidden[pairs[1]]) < 0.2
    features = hidden[:, None] + 2 * rng.normal(size=(NODES, 3))
    return pairs[:, close], features, 5000 + 100 * hidden + 5 * rng.normal(size=NODES)


def fitted(method: str = "certified", **settings: Any) -> VesperRegressor:
    edges, features, numbers = make_graph()
    model = VesperRegressor(
        epsilon=8.0, seed=0, simulate_noise=True, method=method, settings=SMALL | settings
    )
    return model.fit(edges, features, numbers, train=TRAIN)


@pytest.fixture(scope="module")
def model() -> VesperRegressor:
    return fitted()


def test_the_graph_helps(model: VesperRegressor) -> None:
    _, _, numbers = make_graph()
    alone = fitted("mlp")
    assert model.score(TEST, numbers) > alone.score(TEST, numbers[TEST]) + 10
    assert model.privacy_.epsilon == 8.0


def test_numbers_are_in_units_of_labels(model: VesperRegressor) -> None:
    _, _, numbers = make_graph()
    predicted = model.predict(TEST)
    assert predicted.shape == (200,)
    left, spread = np.square(predicted - numbers[TEST]).sum(), numbers[TEST].var() * len(TEST)
    assert model.score(TEST, numbers) == pytest.approx(100 * (1 - left / spread))
    assert model.predict([]).shape == (0,)
    assert (model.predict([5, 4]) == model.predict([4, 5])[::-1]).all()
    assert (model.metric_, model.n_features_in_) == ("r2", 3)
    assert not hasattr(model, "classes_")
    assert not hasattr(model, "predict_proba")


def test_whole_numbers_are_accepted() -> None:
    edges, features, numbers = make_graph()
    whole = np.round(numbers / 50).astype(np.int64)
    model = VesperRegressor(epsilon=8.0, seed=0, simulate_noise=True, settings=SMALL)
    model.fit(edges, features, whole, train=TRAIN[:300], validation=TRAIN[300:])
    assert model.metric_ == "r2"
    assert model.score(TRAIN[300:], whole) == pytest.approx(model.validation_, abs=0.1)


def test_ranking() -> None:
    _, _, numbers = make_graph()
    model = fitted(task="ranking")
    assert model.metric_ == "spearman"
    assert model.score(TEST, numbers) > 60


def test_equal_labels_have_no_metric(model: VesperRegressor) -> None:
    with pytest.raises(InputError, match=r"at least two different values among 3 .* got one"):
        model.score([1, 2, 3], [5.0, 5.0, 5.0])


def test_report_page(model: VesperRegressor, tmp_path: Path) -> None:
    _, _, numbers = make_graph()
    page = model.report(tmp_path / "report.html", ids=TEST, labels=numbers).read_text()
    assert "Predicted values" in page
    assert "On 200 test nodes" in page
    assert "R², test" in page
    assert "Only class labels can be protected" in page
    assert " classes" not in page.partition("</header>")[0]


def test_parameters_make_an_unfitted_copy(model: VesperRegressor) -> None:
    copy = VesperRegressor(**model.get_params())
    assert copy.get_params() == model.get_params()
    with pytest.raises(InputError, match="not trained yet"):
        copy.predict([0])


def test_each_estimator_refers_to_the_other() -> None:
    edges, features, numbers = make_graph()
    with pytest.raises(InputError, match="predict numbers with VesperRegressor"):
        Vesper(settings=SMALL).fit(edges, features, numbers, train=TRAIN)
    with pytest.raises(InputError, match="use VesperRegressor for numbers"):
        Vesper(settings={"task": "ranking"}).fit(edges, features, numbers, train=TRAIN)
    with pytest.raises(InputError, match="use Vesper for classes"):
        fitted(task="classification")
    with pytest.raises(InputError, match=r"write VesperRegressor\(epsilon=\.\.\.\)"):
        fitted(epsilon=1.0)
