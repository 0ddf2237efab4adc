"""Several data parties on later graphs: one budget per party and window."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.errors import BudgetError, InputError
from vesper.mechanism.aggregations.row_noise import RowNoise
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.balance import Balance
from vesper.privacy.ledger.store import Ledger
from vesper.report.budget_section import account_lines
from vesper.session.config import load_config
from vesper.session.data_parties import SimulatedParty
from vesper.session.result import Result, SnapshotResult
from vesper.simulation.simulate import simulate

NODES = 90
SPLITS = [("train", "val", "test")[k % 3] for k in range(NODES)]
SMALL = {"epochs": 2, "width": 8, "hops": 1, "label_messages": False}
PARTIES = (
    SimulatedParty(name="platform", epsilon=8.0),
    SimulatedParty(name="bank", own=True, epsilon=2.0, folder=Path("transfers")),
)

Window = Callable[..., Path]
Rows = NDArray[np.float32]


@pytest.fixture
def window(tmp_path: Path, write_folders: Callable[..., Path]) -> Window:
    """Writes a window of both parties: chords from a seed, and always the same features.

    No chord has an end among the first six nodes; `more` joins two of them.
    """

    def write(name: str, *, platform: int, bank: int, more: tuple[int, ...] = ()) -> Path:
        truth = np.arange(NODES) // 3 % 2
        for folder, seed in (("platform", platform), ("transfers", bank)):
            rng = np.random.default_rng(len(folder))
            features = {f"f{k}": rng.normal(size=NODES) + truth for k in range(3)}
            chords = np.random.default_rng(seed).integers(6, NODES, size=(60, 2))
            chords = np.concatenate([chords, np.array(more, dtype=np.int64).reshape(-1, 2)])
            written = write_folders(
                tmp_path / name / folder,
                nodes={"id": range(NODES), **features},
                edges={"src": chords[:, 0], "dst": chords[:, 1]},
                labels={"id": range(NODES), "label": truth, "split": SPLITS},
            )
            for file in (written / "data").iterdir():
                file.rename(tmp_path / name / folder / file.name)
            (written / "label").rename(tmp_path / name / f"label-of-{folder}")
        (tmp_path / name / "label-of-platform").rename(tmp_path / name / "label")
        return tmp_path / name

    return write


@pytest.fixture
def stage_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes validation choose the stage that needs edges, however it scores on so few nodes."""
    monkeypatch.setattr("vesper.party.label_party.select_stage", lambda *_, **__: 1)


def run(
    first: Path,
    *later: Path,
    out: str = "run",
    parties: tuple[SimulatedParty, ...] = PARTIES,
    **settings: Any,
) -> Result:
    config = load_config(None, {**SMALL, **settings})
    return simulate(first, config, first.parent / out, snapshots=later, parties=parties)


def balances(ledger: Path) -> list[Balance]:
    with closing(Ledger(ledger, clock=lambda: 0.0)) as book:
        assert book.verify() is None
        return list(accounts(book))


def without_run(result: Result) -> list[SnapshotResult]:
    """Results on later windows, without the names of runs, which are random."""
    return [
        replace(each, run="", parties=tuple(replace(cost, run="") for cost in each.parties))
        for each in result.snapshots
    ]


def facts(balance: Balance) -> tuple[int, float, list[float]]:
    return balance.releases, balance.spent_epsilon(), balance.spent.tolist()


@pytest.mark.usefixtures("stage_one")
def test_each_party_pays_for_its_own_graph_of_each_window(window: Window) -> None:
    first, second = window("w0", platform=0, bank=10), window("w1", platform=1, bank=11)
    alone, result = run(first, out="alone"), run(first, second)
    assert alone.stages == result.stages, "training does not depend on later windows"
    (later,) = result.snapshots
    assert (later.name, later.num_test, later.num_nodes) == ("w1", NODES // 3, NODES)
    assert [(each.name, each.epsilon) for each in later.parties] == [("platform", 8), ("bank", 2)]
    assert later.epsilon == 8.0, "that of the least protected"
    for cost in later.parties:
        training, window_one = balances(first.parent / "run" / f"ledger-{cost.name}.sqlite")
        assert training.graph != window_one.graph
        assert window_one.releases == cost.releases == 1
        assert window_one.spent_epsilon() == pytest.approx(cost.spent_epsilon, rel=1e-9)
        assert cost.spent_epsilon == pytest.approx(cost.epsilon, rel=1e-3)
    spent = {party.name: party.spent_epsilon for party in result.parties}
    assert spent == {"platform": pytest.approx(8.0, rel=1e-3), "bank": pytest.approx(2.0, rel=1e-3)}


@pytest.fixture
def noise(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Rows]]:
    """Collects the rows of every release, each with the key and start of its noise bits."""
    releases: list[tuple[str, Rows]] = []
    finish = RowNoise.finish_rows

    def record(self: RowNoise, values: NDArray[np.int32], *, first_row: int = 0) -> Rows:
        finished = finish(self, values, first_row=first_row)
        releases.append((f"{self.bits.key.hex()} from {self.bits.start}", finished.copy()))
        return finished

    monkeypatch.setattr(RowNoise, "finish_rows", record)
    return releases


@pytest.mark.usefixtures("stage_one")
def test_no_two_graphs_have_the_same_noise(window: Window, noise: list[tuple[str, Rows]]) -> None:
    windows = [window(f"w{k}", platform=k, bank=10 + k) for k in range(3)]
    run(*windows)
    assert len(noise) == 6, "two parties, three windows"
    assert len({bits for bits, _ in noise}) == 6


@pytest.mark.usefixtures("stage_one")
def test_another_edge_of_one_party_changes_nothing_at_the_other(
    window: Window, noise: list[tuple[str, Rows]]
) -> None:
    """Neither its charges, nor its noise, nor its releases."""
    first, second = window("w0", platform=0, bank=10), window("w1", platform=1, bank=11)
    other = window("w2", platform=2, bank=11)
    one, two = run(first, second, out="a"), run(first, other, out="b")
    assert without_run(one)[0].parties[1] == without_run(two)[0].parties[1]
    for name in ("platform", "bank"):
        ledgers = [balances(first.parent / out / f"ledger-{name}.sqlite") for out in ("a", "b")]
        assert [facts(each) for each in ledgers[0]] == [facts(each) for each in ledgers[1]]
    ours, theirs = (dict(noise[k : k + 4]) for k in (0, 4))
    assert ours.keys() == theirs.keys(), "the same noise in the same place"
    changed = [bits for bits, rows in ours.items() if not np.array_equal(rows, theirs[bits])]
    assert len(changed) == 1, "only the platform's release of the window that differs"


@pytest.mark.parametrize("method", ["mlp", "gin"])
def test_a_model_is_as_good_where_nothing_has_changed(window: Window, method: str) -> None:
    """The decoder receives the embeddings of both parties in the right order."""
    first = window("w0", platform=0, bank=10)
    second = window("w1", platform=0, bank=10, more=(0, 3))  # both train: no test node sees it
    result = run(first, second, method=method, epochs=9)
    (later,) = result.snapshots
    assert later.test == result.test
    assert len(later.parties) == 2
    assert {each.plan for each in later.parties} == {result.privacy.plan}


def test_runs_repeat_bit_for_bit(window: Window) -> None:
    windows = window("w0", platform=0, bank=10), window("w1", platform=1, bank=11)
    one, two = run(*windows, out="a"), run(*windows, out="b")
    assert without_run(one) == without_run(two)


def with_ledgers(*ledgers: Path) -> tuple[SimulatedParty, ...]:
    return tuple(
        party.model_copy(update={"ledger": ledger})
        for party, ledger in zip(PARTIES, ledgers, strict=True)
    )


def test_ledgers_that_parties_name_are_charged_until_the_budget_is_spent(window: Window) -> None:
    first, second = window("w0", platform=0, bank=10), window("w1", platform=1, bank=11)
    ledgers = [first.parent / f"{party.name}.sqlite" for party in PARTIES]
    result = run(first, second, parties=with_ledgers(*ledgers))
    assert not list((first.parent / "run").glob("ledger*"))
    for ledger, epsilon in zip(ledgers, (8.0, 2.0), strict=True):
        assert balances(ledger)[0].spent_epsilon() == pytest.approx(epsilon, rel=1e-3)
    lines = account_lines(first.parent / "run", result.as_json(), run="any")
    assert [line.spent_epsilon for line in lines] == pytest.approx([8.0, 2.0], rel=1e-3)
    with pytest.raises(BudgetError, match="does not allow"):
        run(first, second, out="again", parties=with_ledgers(*ledgers))
    assert not (first.parent / "again").exists()


def test_one_ledger_for_two_parties_is_refused(window: Window) -> None:
    first = window("w0", platform=0, bank=10)
    ledger = first.parent / "ledger.sqlite"
    with pytest.raises(InputError, match="a separate ledger for each party, got one"):
        run(first, parties=with_ledgers(ledger, first.parent / "w0" / ".." / "ledger.sqlite"))
    config = load_config(None, SMALL)
    for parties in (PARTIES, with_ledgers(ledger, ledger)[:1]):
        with pytest.raises(InputError, match="name the ledger in the table of each"):
            simulate(first, config, first.parent / "run", parties=parties, ledger=ledger)
    assert not ledger.exists()


@pytest.mark.usefixtures("stage_one")
def test_an_unchanged_graph_is_charged_like_any_other(window: Window) -> None:
    """Whether its edges are those of training is not even looked at."""
    first, second = window("w0", platform=0, bank=10), window("w1", platform=1, bank=10)
    result = run(first, second)
    for cost in result.snapshots[0].parties:
        _, later = balances(first.parent / "run" / f"ledger-{cost.name}.sqlite")
        assert later.releases == cost.releases == 1
