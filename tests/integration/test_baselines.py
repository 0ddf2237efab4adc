"""Private baselines, and tasks other than classes, from folders to a run folder."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.errors import InputError
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.store import Ledger
from vesper.session.config import load_config
from vesper.session.result import Result
from vesper.simulation.simulate import simulate

SMALL = {"epochs": 6, "width": 16, "batch_size": 128, "learning_rate": 0.01}
NODES = 300
METHODS = ["gap", "progap", "edgerand", "lapgraph"]


def write(root: Path, labels: object, features: object) -> Path:
    """Communities of every third node, 12 neighbours each, nearly all from their own."""
    rng = np.random.default_rng(0)
    community = np.arange(NODES) % 3
    src = rng.integers(0, NODES, size=6 * NODES)
    same = rng.integers(0, NODES // 3, size=6 * NODES) * 3 + community[src]
    dst = np.where(rng.random(6 * NODES) < 0.95, same, rng.integers(0, NODES, size=6 * NODES))
    (root / "data").mkdir()
    (root / "label").mkdir()
    columns = {f"f{k}": column for k, column in enumerate(np.asarray(features).T)}
    pq.write_table(pa.table({"id": np.arange(NODES), **columns}), root / "data" / "nodes.parquet")
    pq.write_table(pa.table({"src": src, "dst": dst}), root / "data" / "edges.parquet")
    splits = rng.permutation(["train"] * 150 + ["val"] * 70 + ["test"] * 80)
    table = {"id": np.arange(NODES), "label": labels, "split": splits}
    pq.write_table(pa.table(table), root / "label" / "labels.parquet")
    return root


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three communities are the classes; features are weak."""
    rng = np.random.default_rng(1)
    community = np.arange(NODES) % 3
    features = rng.normal(size=(NODES, 4)) + 0.4 * np.eye(4)[community]
    return write(tmp_path_factory.mktemp("classes"), community, features.astype(np.float32))


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A number that follows from the community, a feature and chance."""
    rng = np.random.default_rng(2)
    features = rng.normal(size=(NODES, 4))
    labels = 2.0 * (np.arange(NODES) % 3) + features[:, 0] + 0.3 * rng.normal(size=NODES)
    return write(tmp_path_factory.mktemp("numbers"), labels, features.astype(np.float32))


def run(folder: Path, out: Path, **settings: object) -> Result:
    return simulate(folder, load_config(None, {**SMALL, **settings}), out)


def ledger_of(out: Path) -> Ledger:
    return Ledger(out / "ledger.sqlite", clock=lambda: 0.0)


@pytest.mark.parametrize("method", METHODS)
def test_the_ledger_holds_the_releases_and_all_of_epsilon(
    classes: Path, tmp_path: Path, method: str
) -> None:
    result = run(classes, tmp_path / "run", method=method, epsilon=3.0, epochs=2)
    assert result.privacy.plan == "certified"
    assert result.privacy.certified_epsilon == 3.0
    assert result.privacy.claimed_epsilon is None
    assert "not private" in result.privacy.noise
    ledger = ledger_of(tmp_path / "run")
    kinds = [entry.facts["kind"] for entry in ledger.entries()]
    sums = ["gaussian release"] * 2
    releases = sums if "gap" in method else ["pure release"]
    assert kinds[-result.privacy.releases - 2 :] == ["reserved", *releases, "returned"]
    assert kinds.count("gaussian release") + kinds.count("pure release") == result.privacy.releases
    assert accounts(ledger)[0].spent_epsilon() == pytest.approx(3.0, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_runs_repeat_bit_for_bit(classes: Path, tmp_path: Path, method: str) -> None:
    for name in "ab":
        run(classes, tmp_path / name, method=method, epsilon=6.0, epochs=3, dropout=0.1, seed=5)
    for file in ("data_party.npz", "label_party.npz"):
        with np.load(tmp_path / "a" / file) as one, np.load(tmp_path / "b" / file) as two:
            assert one.files
            assert all(np.array_equal(one[key], two[key]) for key in one.files)


@pytest.mark.parametrize("method", ["gap", "progap"])
def test_neighbours_help_and_more_so_without_noise(
    classes: Path, tmp_path: Path, method: str
) -> None:
    settings = {"method": method, "epochs": 30}
    free = run(classes, tmp_path / "free", epsilon=float("inf"), **settings)
    noisy = run(classes, tmp_path / "noisy", epsilon=0.2, **settings)
    assert free.test > free.stages[0]["test"] + 15
    assert free.test > noisy.test + 10
    assert free.privacy.certified_epsilon is None
    assert free.privacy.noise == "none: not private"


@pytest.mark.parametrize("accounting", ["as-published", "theorem-1"])
@pytest.mark.parametrize("method", ["gap", "progap"])
def test_published_accounting_is_claimed_and_nothing_is_charged(
    classes: Path, tmp_path: Path, method: str, accounting: str
) -> None:
    result = run(classes, tmp_path / "run", method=method, accounting=accounting, epochs=1)
    assert result.privacy.plan == "paper"
    assert result.privacy.certified_epsilon is None
    assert result.privacy.claimed_epsilon == 4.0
    assert result.privacy.worth_epsilon is not None
    assert (result.privacy.worth_epsilon > 4) == (accounting == "as-published")
    kinds = [e.facts["kind"] for e in ledger_of(tmp_path / "run").entries()]
    assert "gaussian release" not in kinds
    assert [kind for kind in kinds if "unprotected" in kind]


@pytest.mark.parametrize("encoder", ["gru", "transformer"])
def test_features_may_be_sequences(classes: Path, tmp_path: Path, encoder: str) -> None:
    result = run(classes, tmp_path / "run", encoder=encoder, steps=2, epochs=2, epsilon=8.0)
    assert result.privacy.certified_epsilon == 8.0
    with pytest.raises(InputError, match="steps: expected a divisor of the 4 features"):
        run(classes, tmp_path / "other", encoder=encoder, steps=3)


@pytest.mark.parametrize(
    ("task", "metric"), [("auto", "r2"), ("regression", "r2"), ("ranking", "spearman")]
)
def test_labels_may_be_numbers(numbers: Path, tmp_path: Path, task: str, metric: str) -> None:
    settings = {"task": task, "epochs": 40, "epsilon": 20.0}
    alone = run(numbers, tmp_path / "mlp", method="mlp", **settings)
    result = run(numbers, tmp_path / "run", **settings)
    assert result.metric == alone.metric == metric
    assert result.test > alone.test + 10
    assert result.test > 50


def test_a_task_that_does_not_fit_is_refused(classes: Path, numbers: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected whole numbers or text, got double"):
        run(numbers, tmp_path / "a", task="classification")
    with pytest.raises(InputError, match=r"setting 'run\.task'"):
        run(classes, tmp_path / "b", task="clustering")
    with pytest.raises(InputError, match="class_weights: expected 'none' for ranking"):
        run(classes, tmp_path / "c", task="ranking", class_weights="balanced")


def test_balanced_classes_run(classes: Path, tmp_path: Path) -> None:
    assert run(classes, tmp_path / "run", class_weights="balanced", epochs=2).metric == "accuracy"
