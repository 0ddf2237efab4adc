"""Train on one window, predict on the next: each graph has its own account and budget."""

import json
import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vesper.errors import BudgetError, InputError
from vesper.method.registry import METHODS
from vesper.privacy.accounting.participation import mu_for
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.balance import Balance
from vesper.privacy.ledger.graph_name import SIMULATED_GRAPH
from vesper.privacy.ledger.store import Ledger
from vesper.session.config import load_config
from vesper.session.data_parties import ONLY_DATA_PARTY
from vesper.session.result import Result
from vesper.simulation.simulate import simulate

SMALL = {"epochs": 2, "width": 8, "epsilon": 8.0, "hops": 1, "label_messages": False}
NODES = 90
SPLITS = [("train", "val", "test")[k % 3] for k in range(NODES)]

Window = Callable[..., Path]


@pytest.fixture
def window(tmp_path: Path, write_folders: Callable[..., Path]) -> Window:
    """Writes a window: a ring, chords drawn from `seed`, and always the edge {0, 45}."""

    def write(
        name: str, *, seed: int, more: tuple[tuple[int, int], ...] = (), **labels: Any
    ) -> Path:
        rng = np.random.default_rng(seed)
        chords = rng.integers(0, NODES, size=(60, 2)).tolist()
        edges = [*((k, (k + 1) % NODES) for k in range(NODES)), *chords, (0, 45), *more]
        truth = np.arange(NODES) // 3 % 2
        features = {f"f{k}": rng.normal(size=NODES) + truth for k in range(3)}
        return write_folders(
            tmp_path / name,
            nodes={"id": range(NODES), **features},
            edges={"src": [a for a, _ in edges], "dst": [b for _, b in edges]},
            labels={"id": range(NODES), "label": truth, "split": SPLITS, **labels},
        )

    return write


def run(first: Path, *later: Path, out: str = "run", **options: Any) -> Result:
    settings = {**SMALL, **options.pop("settings", {})}
    path = first.parent / out
    return simulate(first, load_config(None, settings), path, snapshots=later, **options)


def balances(ledger: Path) -> dict[str, Balance]:
    with closing(Ledger(ledger, clock=lambda: 0.0)) as book:
        assert book.verify() is None
        return {balance.graph: balance for balance in accounts(book)}


def mu_spent_on_edge(balance: Balance, edge: tuple[int, int]) -> float:
    """Total mu of everything that was released about one edge: its two rows."""
    units = balance.spent[list(edge)].sum() / balance.spent.max()
    return mu_for(spent=balance.spent_mu_squared * units / 2, rows=2)


def test_each_window_has_its_own_budget_and_charges(window: Window) -> None:
    """No window is charged for another; an edge in two windows is charged in each."""
    first, second, third = (window(f"w{k}", seed=k) for k in range(3))
    result = run(first, second, third)
    ledger = first.parent / "run" / "ledger.sqlite"
    names = [SIMULATED_GRAPH, f"{SIMULATED_GRAPH}.1", f"{SIMULATED_GRAPH}.2"]
    by_graph = balances(ledger)
    assert list(by_graph) == names, "no other graph was charged"
    stage = result.chosen_stage
    with closing(Ledger(ledger, clock=lambda: 0.0)) as book:
        charged = [(e.graph, e.run) for e in book.entries() if e.cost > 0]
    assert [graph for graph, _ in charged] == [names[0], *(names[1:] if stage else [])]
    assert len({run for _, run in charged}) == len(charged), "each run has its own name"
    for graph in names[: 3 if stage else 1]:
        balance = by_graph[graph]
        assert balance.budget is not None
        assert balance.spent_epsilon() == pytest.approx(8.0, rel=1e-3)
        same_edge = mu_spent_on_edge(balance, (0, 45))
        assert same_edge == pytest.approx(mu_for(spent=balance.spent_mu_squared, rows=2))


@pytest.fixture
def stage_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes validation choose the stage that needs edges, however it scores on so few nodes."""
    monkeypatch.setattr("vesper.party.label_party.select_stage", lambda *_, **__: 1)


@pytest.mark.usefixtures("stage_one")
def test_releases_of_a_window_never_charge_another(window: Window) -> None:
    first, second = window("w0", seed=0), window("w1", seed=1)
    alone = run(first, out="alone")
    both = run(first, second, out="both")
    assert alone.stages == both.stages, "training does not depend on later windows"
    ledgers = [first.parent / name / "ledger.sqlite" for name in ("alone", "both")]
    before, after = (balances(ledger)[SIMULATED_GRAPH] for ledger in ledgers)
    assert np.array_equal(before.spent, after.spent)
    later = balances(ledgers[1])[f"{SIMULATED_GRAPH}.1"]
    assert later.releases == both.snapshots[0].releases == 1
    assert both.snapshots[0].spent_epsilon == pytest.approx(later.spent_epsilon(), rel=1e-9)
    assert later.spent_epsilon() > 7.9


@pytest.mark.usefixtures("stage_one")
def test_the_name_decides_on_the_account_and_the_edges_do_not(window: Window) -> None:
    first, second = window("w0", seed=0), window("w1", seed=1)
    ledger = first.parent / "ledger.sqlite"
    run(first, second, ledger=ledger)
    spent = balances(ledger)
    grown = window("w1-grown", seed=1, more=((3, 50),))
    for folders in ((first, second), (window("w2", seed=2), grown)):  # equal edges, other edges
        with pytest.raises(BudgetError, match="graph 'simulation' does not allow"):
            run(*folders, out="again", ledger=ledger)
    parties = (ONLY_DATA_PARTY.model_copy(update={"graph": "other"}),)
    run(first, second, out="other", ledger=ledger, parties=parties)  # equal edges, another name
    now = balances(ledger)
    assert now.keys() - spent.keys() == {"other", "other.1"}
    for graph, balance in spent.items():
        assert np.array_equal(now[graph].spent, balance.spent)
        assert now[graph].reservations == {}
    assert now["other.1"].spent_epsilon() == pytest.approx(8.0, rel=1e-3)


@pytest.mark.usefixtures("stage_one")
def test_runs_repeat_bit_for_bit_and_each_window_has_its_own_noise(window: Window) -> None:
    first, second, third = (window(f"w{k}", seed=k) for k in range(3))
    one, two = run(first, second, third, out="a"), run(first, second, third, out="b")
    assert [replace(each, run="") for each in one.snapshots] == [
        replace(each, run="") for each in two.snapshots
    ]
    swapped = run(first, third, second, out="c")
    assert swapped.snapshots[0].test != one.snapshots[1].test, (
        "a window in another position has other noise"
    )
    assert {each.name for each in one.snapshots} == {"w1", "w2"}
    facts = json.loads((first.parent / "a" / "result.json").read_text())
    assert [each["test"] for each in facts["snapshots"]] == [each.test for each in one.snapshots]


@pytest.mark.parametrize("method", ["mlp", "gin", "paper-gin", "gap", "edgerand"])
def test_every_method_predicts_on_a_later_graph(window: Window, method: str) -> None:
    result = run(window("w0", seed=0), window("w1", seed=1), settings={"method": method})
    (later,) = result.snapshots
    assert 0 <= later.test <= 100
    assert later.plan == result.privacy.plan
    if later.plan == "certified":
        assert later.epsilon == 8.0
    elif later.plan == "edge-free":
        assert (later.epsilon, later.spent_epsilon, later.releases) == (0.0, 0.0, 0)
    else:
        assert (later.epsilon, later.spent_epsilon) == (None, None), "nothing is counted"


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"label": ["a"] * NODES}, "expected the 2 classes of training, found 1 others"),
        ({"label": [1] * NODES}, "at least two different labels"),
        ({"split": ["train"] * NODES}, "expected some rows with 'test'"),
        ({"id": range(5, NODES + 5)}, "label an id that is not a node"),
    ],
    ids=["classes", "one class", "no test", "no node"],
)
def test_unusable_labels_are_refused_before_anything_is_charged(
    window: Window, labels: dict[str, Any], message: str
) -> None:
    first, second = window("w0", seed=0), window("w1", seed=1, **labels)
    ledger = first.parent / "ledger.sqlite"
    with pytest.raises(InputError, match=message):
        run(first, second, ledger=ledger)
    assert not any(balance.releases for balance in balances(ledger).values())
    assert not (first.parent / "run").exists()


@pytest.mark.usefixtures("stage_one")
def test_equal_graphs_in_two_windows_are_charged_like_any_other(window: Window) -> None:
    """Whether edges are equal is not even looked at: each window has an account of its own."""
    first, second = window("w0", seed=0), window("w1", seed=0)
    result = run(first, second, window("w2", seed=0))
    charged = balances(first.parent / "run" / "ledger.sqlite")
    assert [balance.releases for balance in charged.values()] == [1, 1, 1]
    assert [each.releases for each in result.snapshots] == [1, 1]


def test_other_feature_columns_are_refused(
    window: Window, write_folders: Callable[..., Path]
) -> None:
    first, second = window("w0", seed=0), window("w1", seed=1)
    write_folders(second, nodes={"id": range(NODES), "f0": np.zeros(NODES)})
    with pytest.raises(InputError, match=r"3 feature columns of training .* 2 are missing"):
        run(first, second)


ALL_WITH_EDGES = [name for name in METHODS if name != "mlp"]


@pytest.mark.parametrize("hops", [None, 2])
@pytest.mark.parametrize("epsilon", [8.0, math.inf])
@pytest.mark.parametrize("method", ALL_WITH_EDGES)
def test_every_method_restores_its_layers(
    window: Window, method: str, epsilon: float, hops: int | None
) -> None:
    first, second = window("w0", seed=0), window("w1", seed=1)
    settings = {"method": method, "epsilon": epsilon, "hops": hops, "epochs": 1}
    result = run(first, second, settings=settings)
    assert 0 <= result.snapshots[0].test <= 100
