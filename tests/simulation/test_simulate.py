"""Simulations end to end: party folders in, a run folder out."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from vesper.cli.app import app
from vesper.engine.engine import InProcessEngine, using
from vesper.errors import BudgetError, InputError
from vesper.graph.holdings import open_data
from vesper.mechanism.door import open_graph_account
from vesper.privacy.events import PureRelease
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.graph_name import SIMULATED_GRAPH
from vesper.privacy.ledger.reader import DEGREES
from vesper.privacy.ledger.store import Ledger
from vesper.session.config import load_config
from vesper.session.result import Result
from vesper.simulation.simulate import simulate

SMALL = {"epochs": 8, "width": 16, "batch_size": 128, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three communities of 200, weak features, 20 neighbours each, nine in ten from their own."""
    root = tmp_path_factory.mktemp("communities")
    rng = np.random.default_rng(0)
    n = 600
    labels = np.arange(n) % 3
    features = rng.normal(size=(n, 4)) + 0.5 * np.eye(4)[labels]
    src = rng.integers(0, n, size=10 * n)
    same = rng.integers(0, n // 3, size=10 * n) * 3 + labels[src]
    dst = np.where(rng.random(10 * n) < 0.9, same, rng.integers(0, n, size=10 * n))
    (root / "data").mkdir()
    (root / "label").mkdir()
    names = [f"user-{k}" for k in range(n)]
    columns = {f"f{k}": features[:, k].astype(np.float32) for k in range(4)}
    pq.write_table(pa.table({"id": names, **columns}), root / "data" / "nodes.parquet")
    edges = {"src": [names[k] for k in src], "dst": [names[k] for k in dst]}
    pq.write_table(pa.table(edges), root / "data" / "edges.parquet")
    splits = rng.permutation(["train"] * 300 + ["val"] * 100 + ["test"] * 200)
    table = {"id": names[::-1], "label": labels[::-1], "split": splits}
    pq.write_table(pa.table(table), root / "label" / "labels.parquet")
    return root


def run(folders: Path, out: Path, **settings: object) -> Result:
    return simulate(folders, load_config(None, {**SMALL, **settings}), out)


def test_the_graph_helps_and_everything_is_charged(folders: Path, tmp_path: Path) -> None:
    mlp = run(folders, tmp_path / "mlp", method="mlp")
    private = run(folders, tmp_path / "certified", method="certified", epsilon=8.0)
    assert private.test > mlp.test + 5
    assert mlp.privacy.plan == "edge-free"
    assert mlp.privacy.releases == 0
    assert private.privacy.plan == "certified"
    assert private.privacy.certified_epsilon == 8.0
    assert "not private" in private.privacy.noise
    ledger = Ledger(tmp_path / "certified" / "ledger.sqlite", clock=lambda: 0.0)
    kinds = [entry.facts["kind"] for entry in ledger.entries()]
    releases = ["gaussian release"] * 3  # a probe, two hops
    assert kinds == ["key", "graph", "budget", "version", "reserved", *releases, "returned"]
    assert accounts(ledger)[0].spent_epsilon() == pytest.approx(8.0, rel=1e-3)
    assert ledger.verify() is None
    files = {path.name for path in (tmp_path / "certified").iterdir()}
    assert {"config.json", "result.json", "data_party.npz", "label_party.npz"} <= files


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"method": "gap"},
        {"method": "paper-gin", "epochs": 2},
        {"privacy_unit": "node", "max_degree": 60},
    ],
)
def test_an_engine_does_not_change_the_result(
    folders: Path, tmp_path: Path, settings: dict[str, object]
) -> None:
    here = run(folders, tmp_path / "here", epsilon=8.0, **settings)
    engine = InProcessEngine(3)
    with using(engine):
        there = run(folders, tmp_path / "there", epsilon=8.0, **settings)
    assert there.stages == here.stages
    assert (tmp_path / "there" / "config.json").read_bytes() == (
        tmp_path / "here" / "config.json"
    ).read_bytes()
    for name in ("data_party.npz", "label_party.npz"):
        ours, theirs = (np.load(tmp_path / each / name) for each in ("here", "there"))
        assert all(np.array_equal(ours[key], theirs[key]) for key in ours.files)
    assert engine.calls_made


def test_runs_repeat_bit_for_bit(folders: Path, tmp_path: Path) -> None:
    first = run(folders, tmp_path / "a", seed=3)
    second = run(folders, tmp_path / "b", seed=3)
    other = run(folders, tmp_path / "c", seed=4)
    assert (first.validation, first.test) == (second.validation, second.test)
    for name in ("data_party.npz", "label_party.npz"):
        with np.load(tmp_path / "a" / name) as one, np.load(tmp_path / "b" / name) as two:
            assert all(np.array_equal(one[key], two[key]) for key in one.files)
    assert first.stages == second.stages
    assert first.stages != other.stages


def test_less_budget_is_more_noise(folders: Path, tmp_path: Path) -> None:
    strict = run(folders, tmp_path / "a", epsilon=0.5, epochs=1)
    loose = run(folders, tmp_path / "b", epsilon=8.0, epochs=1)
    assert strict.privacy.noise_std is not None
    assert loose.privacy.noise_std is not None
    assert strict.privacy.noise_std > 5 * loose.privacy.noise_std


def test_a_run_folder_is_never_overwritten(folders: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("results")
    with pytest.raises(InputError, match="new or empty folder"):
        run(folders, tmp_path)


def test_settings_are_checked() -> None:
    with pytest.raises(
        InputError, match=r"unknown setting 'epslion'; did you mean 'privacy.epsilon'"
    ):
        load_config(None, {"epslion": 1.0})
    with pytest.raises(InputError, match=r"setting 'privacy.epsilon': .* got -1"):
        load_config(None, {"epsilon": -1.0})


def test_a_toml_file_with_an_unknown_key(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("[privacy]\nepsilon = 2\nhop = 1\n")
    with pytest.raises(
        InputError, match=r"unknown setting 'privacy.hop'; did you mean 'privacy.hops'"
    ):
        load_config(path, {})
    path.write_text("[privacy]\nepsilon = 2\n")
    assert load_config(path, {"seed": 5}).privacy.epsilon == 2
    path.write_text("[privacy\n")
    with pytest.raises(InputError, match="not a readable TOML file"):
        load_config(path, {})


@pytest.mark.parametrize("classes", [2, 5])
def test_the_first_stage_is_the_mlp(
    classes: int, write_folders: Callable[..., Path], tmp_path: Path
) -> None:
    """What edges add is measured against exactly the same model without them, for each seed.

    Over many steps of large batches, sums computed in another order would show.
    """
    nodes, rng = 1500, np.random.default_rng(0)
    labels = rng.integers(0, classes, nodes)
    root = write_folders(
        tmp_path / "folders",
        nodes={"id": range(nodes), **{f"x{k}": rng.normal(size=nodes) + labels for k in range(7)}},
        edges={"src": rng.integers(0, nodes, 500), "dst": rng.integers(0, nodes, 500)},
        labels={
            "id": range(nodes),
            "label": labels,
            "split": rng.choice(["train", "val", "test"], nodes),
        },
    )
    alone, first = (
        simulate(
            root,
            load_config(None, {"method": method, "epochs": 12, "hops": 2, "batch_size": 300}),
            tmp_path / method,
        )
        for method in ("mlp", "certified")
    )
    assert alone.stages[0] == first.stages[0]
    ours, theirs = (
        np.load(tmp_path / method / "data_party.npz") for method in ("certified", "mlp")
    )
    for name in theirs.files:
        assert np.array_equal(ours[name], theirs[name]), name


def count(folders: Path, ledger: Path, *, epsilon: float, graph: str = SIMULATED_GRAPH) -> Path:
    """Charge a count of degrees with simulated noise."""
    with closing(Ledger(ledger, clock=lambda: 0.0)) as book:
        graph_data = open_data(folders / "data").graph
        account = open_graph_account(graph_data, graph, ledger=book, simulated=True)
        account.charge(PureRelease(epsilon=epsilon, what=DEGREES), None, run="degrees")
    return ledger


def test_earlier_counts_leave_less_for_training(folders: Path, tmp_path: Path) -> None:
    ledger = count(folders, tmp_path / "ledger.sqlite", epsilon=0.5)
    config = load_config(None, {**SMALL, "epsilon": 4.0, "epochs": 1})
    counted = simulate(folders, config, tmp_path / "a", ledger=ledger)
    fresh = simulate(folders, config, tmp_path / "b")
    assert counted.privacy.certified_epsilon == fresh.privacy.certified_epsilon == 4.0
    assert counted.privacy.noise_std is not None
    assert fresh.privacy.noise_std is not None
    assert 1.05 < counted.privacy.noise_std / fresh.privacy.noise_std < 1.25
    with pytest.raises(BudgetError, match="Requested"):
        simulate(folders, config, tmp_path / "c", ledger=ledger)
    assert not list((tmp_path / "c").glob("*.npz"))


def test_counts_under_another_name_leave_the_noise_as_it_is(folders: Path, tmp_path: Path) -> None:
    ledger = count(folders, tmp_path / "ledger.sqlite", epsilon=0.5, graph="counted")
    config = load_config(None, {**SMALL, "epsilon": 4.0, "epochs": 1})
    counted = simulate(folders, config, tmp_path / "a", ledger=ledger)
    fresh = simulate(folders, config, tmp_path / "b")
    assert counted.privacy == fresh.privacy
    assert counted.stages == fresh.stages


def test_simulated_noise_is_never_charged_to_a_graph_with_secret_noise(
    folders: Path, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.sqlite"
    degrees = ["degrees", str(folders), "--epsilon", "0.5", "--ledger", str(ledger), "--json"]
    assert CliRunner().invoke(app, [*degrees, "--graph", SIMULATED_GRAPH]).exit_code == 0
    config = load_config(None, {**SMALL, "epsilon": 4.0, "epochs": 1})
    with pytest.raises(InputError, match="charged for secret noise so far, got simulated noise"):
        simulate(folders, config, tmp_path / "a", ledger=ledger)


def test_earlier_counts_do_not_change_the_number_of_hops(folders: Path, tmp_path: Path) -> None:
    ledger = count(folders, tmp_path / "ledger.sqlite", epsilon=0.1)
    config = load_config(None, {**SMALL, "epsilon": 8.0, "epochs": 1})  # two hops, one below 8
    counted = simulate(folders, config, tmp_path / "a", ledger=ledger)
    fresh = simulate(folders, config, tmp_path / "b")
    assert len(counted.privacy.noise_stds) == len(fresh.privacy.noise_stds) == 2
