"""Export: what is in the file, what it cost, and what is refused before anything is charged."""

import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.errors import BudgetError, InputError, VesperError
from vesper.export.release_file import ExportFile
from vesper.export.writer import Export, export_features
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import GaussianRelease, PureRelease
from vesper.privacy.ledger.account import open_account
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.ledger_file import default_ledger
from vesper.privacy.ledger.statement import verify_file
from vesper.privacy.ledger.store import Ledger
from vesper.session.config import load_config

SMALL = {"epochs": 2, "width": 8, "batch_size": 64, "epsilon": 4.0, "hops": 2}
N = 120


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """A ring of two alternating classes, and two nodes without a label."""
    root = tmp_path / "folders"
    (root / "data").mkdir(parents=True)
    (root / "label").mkdir()
    generator = np.random.default_rng(0)
    ids = [f"user-{k}" for k in range(N)]
    features = {f"f{k}": generator.normal(size=N).astype(np.float32) for k in range(3)}
    pq.write_table(pa.table({"id": ids, **features}), root / "data" / "nodes.parquet")
    edges = {"src": ids, "dst": ids[1:] + ids[:1]}
    pq.write_table(pa.table(edges), root / "data" / "edges.parquet")
    labelled = range(N - 2)
    splits = [("train", "train", "val", "test")[k % 4] for k in labelled]
    labels = {"id": ids[:-2], "label": [k // 4 % 2 for k in labelled], "split": splits}
    pq.write_table(pa.table(labels), root / "label" / "labels.parquet")
    return root


def run(
    folder: Path,
    out: Path,
    *,
    graph_name: str = "payments",
    simulated: bool = False,
    **settings: object,
) -> Export:
    config = load_config(None, {**SMALL, **settings})
    return export_features(folder, config, out, graph_name=graph_name, simulated=simulated)


def user_ledger() -> Ledger:
    """The ledger that is charged unless another one is named."""
    return Ledger(default_ledger(), clock=lambda: 0.0)


def test_export_with_labels(folders: Path, tmp_path: Path) -> None:
    made = run(folders, tmp_path / "r.parquet")
    assert made.columns == (
        "id",
        *("stage0_0", "stage0_1"),
        *("hop1_degree", "hop1_0", "hop1_1", "stage1_0", "stage1_1"),
        *("hop2_degree", "hop2_0", "hop2_1", "stage2_0", "stage2_1"),
    )
    table = pq.read_table(made.file)
    assert table.column_names == list(made.columns)
    assert table.column("id").to_pylist() == sorted(f"user-{k}" for k in range(N))
    values = np.column_stack([table[name].to_numpy() for name in made.columns[1:]])
    assert np.isfinite(values).all()
    assert (values.std(axis=0) > 0).all()
    assert abs(table["hop1_degree"].to_numpy().mean() - 2) < 1.5
    assert set(made.facts["columns"]) == {"stage0_*", "hop*_degree", "hop*_*", "stage*_*"}
    with closing(user_ledger()) as book:
        (balance,) = accounts(book)
        assert balance.releases == len(made.facts["releases"]) == 3  # the probe and two hops
        assert balance.spent_epsilon() == pytest.approx(4.0, rel=1e-6)
        assert made.facts["spent_epsilon"] <= made.facts["epsilon"] == 4.0
        assert balance.graph not in made.statement.read_text()
        assert balance.reservations == {}
        entries = [entry for entry in book.entries() if entry.run == made.facts["run"]]
        assert [entry.facts for entry in entries if entry.cost > 0] == [
            {name: value for name, value in release.items() if name != "claims"}
            for release in made.facts["releases"]
        ]


def test_export_without_labels(folders: Path, tmp_path: Path) -> None:
    shutil.rmtree(folders / "label")
    made = run(folders, tmp_path / "r.parquet", hops=None)
    assert len(made.facts["releases"]) == 1
    assert {name.split("_")[0] for name in made.columns} == {"id", "own", "hop1"}
    other = folders.parent / "other"
    shutil.copytree(folders / "data", other)
    own = run(other, tmp_path / "own.parquet", graph_name="other")  # its own folder
    assert len(own.facts["releases"]) == 2


def test_other_aggregators_have_no_degree_column(folders: Path, tmp_path: Path) -> None:
    made = run(folders, tmp_path / "r.parquet", aggregator="gat", hops=1)
    assert "hop1_degree" not in made.columns
    assert {"hop1_0", "hop1_1", "hop1_2"} <= set(made.columns)
    facts = [entry.facts for entry in user_ledger().entries() if entry.cost > 0]
    assert facts[-1]["aggregation"] == "attention"
    probe, hop = made.facts["releases"]
    assert (probe["claims"], hop["claims"]) == (["R-SUM", "R-GRID"], ["S-ATT", "R-GRID"])


def test_without_labels_only_sums_are_possible(folders: Path, tmp_path: Path) -> None:
    shutil.rmtree(folders / "label")
    with pytest.raises(InputError, match="expected 'gin' without labels"):
        run(folders, tmp_path / "r.parquet", aggregator="max")
    assert not default_ledger().exists()


def test_a_second_export_is_refused_before_it_is_charged(folders: Path, tmp_path: Path) -> None:
    run(folders, tmp_path / "first.parquet")
    with closing(user_ledger()) as book:
        before = book.head()
    with pytest.raises(BudgetError, match="Remaining"):
        run(folders, tmp_path / "second.parquet")
    with closing(user_ledger()) as book:
        assert book.head() == before
    assert not (tmp_path / "second.parquet").exists()


def test_an_export_that_fits_only_in_part_is_refused(folders: Path, tmp_path: Path) -> None:
    """The budget is enough for one hop, and two are requested: nothing is charged."""
    run(folders, tmp_path / "first.parquet", simulated=True)  # spends nothing
    with closing(user_ledger()) as book:
        budget = Budget(epsilon=4.0, delta=1e-4)
        account = open_account(book, "payments", num_nodes=N, budget=budget)
        event = GaussianRelease(noise_std=account.noise_std_for(releases=2))
        account.charge(event, None, run="before")
        before = book.head()
    with pytest.raises(BudgetError, match="Requested"):
        run(folders, tmp_path / "second.parquet", delta=1e-4)
    with closing(user_ledger()) as book:
        assert book.head() == before


def test_what_was_charged_stays_charged(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ExportFile, "write", stop)
    with pytest.raises(KeyboardInterrupt):
        run(folders, tmp_path / "out" / "r.parquet")
    assert list((tmp_path / "out").iterdir()) == []
    with closing(user_ledger()) as book:
        assert accounts(book)[0].releases == 3


def test_earlier_counts_reduce_the_budget(folders: Path, tmp_path: Path) -> None:
    whole = run(folders, tmp_path / "whole.parquet", simulated=True)
    with closing(user_ledger()) as book:
        account = open_account(book, "payments", num_nodes=N)
        account.charge(PureRelease(epsilon=1.0, what="degrees"), None, run="degrees")
    made = run(folders, tmp_path / "r.parquet")
    noises = [facts["releases"][0]["noise_std"] for facts in (whole.facts, made.facts)]
    assert noises[1] > 1.2 * noises[0]
    assert made.facts["spent_epsilon"] == pytest.approx(3.0)
    assert made.facts["epsilon"] == 4.0


def test_earlier_counts_that_used_the_whole_budget(folders: Path, tmp_path: Path) -> None:
    with closing(user_ledger()) as book:
        account = open_account(book, "payments", num_nodes=N)
        account.charge(PureRelease(epsilon=4.0, what="degrees"), None, run="degrees")
    with pytest.raises(BudgetError, match="leaves nothing"):
        run(folders, tmp_path / "r.parquet")


def test_a_simulated_export_is_repeatable_free_and_marked(folders: Path, tmp_path: Path) -> None:
    made = [
        run(folders, tmp_path / f"{k}.parquet", simulated=True, seed=seed)
        for k, seed in enumerate((7, 7, 8))
    ]
    first, second, third = (one.file.read_bytes() for one in made)
    assert first == second != third
    assert made[0].facts["simulated"] is True
    assert not default_ledger().exists()
    assert {path.suffix for path in tmp_path.iterdir() if path.is_file()} == {".parquet", ".json"}


def test_noise_from_the_operating_system_is_new_each_time(folders: Path, tmp_path: Path) -> None:
    config = load_config(None, {**SMALL, "seed": 7, "epochs": 1})
    files = []
    for k in range(2):
        ledger = tmp_path / f"{k}.sqlite"
        files.append(
            export_features(
                folders, config, tmp_path / f"{k}.parquet", graph_name="payments", ledger=ledger
            ).file
        )
    one, two = (pq.read_table(path)["hop1_0"].to_numpy() for path in files)
    assert (one != two).mean() > 0.9


def test_tampering_with_one_value_is_detected(folders: Path, tmp_path: Path) -> None:
    made = run(folders, tmp_path / "r.parquet", simulated=True)
    content = bytearray(made.file.read_bytes())
    content[len(content) // 2] ^= 1
    made.file.write_bytes(content)
    with pytest.raises(VesperError, match="was changed"):
        verify_file(made.file)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": float("inf")}, "expected a finite number"),
        ({"method": "mlp"}, "expected 'certified', whose releases are certified, got 'mlp'"),
    ],
)
def test_what_certifies_nothing_is_refused(
    folders: Path, tmp_path: Path, settings: dict[str, object], message: str
) -> None:
    config = load_config(None, settings)
    with pytest.raises(InputError, match=message):
        export_features(folders, config, tmp_path / "r.parquet", graph_name="payments")
    assert not default_ledger().exists()


def test_an_existing_file_is_refused_before_a_ledger_is_made(folders: Path, tmp_path: Path) -> None:
    (tmp_path / "r.parquet").write_text("precious")
    with pytest.raises(InputError, match="already exists"):
        run(folders, tmp_path / "r.parquet")
    assert not default_ledger().exists()
