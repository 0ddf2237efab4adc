from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from vesper.errors import BudgetError, InputError
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.aggregation import Aggregation
from vesper.mechanism.aggregations.attention import GridAttention
from vesper.mechanism.aggregations.clamped_gcn import GridGcn
from vesper.mechanism.aggregations.grid import to_grid
from vesper.mechanism.aggregations.maximum import GridMax
from vesper.mechanism.door import (
    ChargedDoor,
    ClaimedDoor,
    ClosedDoor,
    OpenDoor,
    open_graph_account,
)
from vesper.mechanism.graph_version import version_of_graph
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.noisy_graph.edgerand import EdgeRand
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import GaussianRelease
from vesper.privacy.ledger.account import open_account
from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.privacy.ledger.overlap import version_of
from vesper.privacy.ledger.reservation import Reservation
from vesper.privacy.ledger.store import Ledger, key_of
from vesper.privacy.relation import LabelRelation, NodeRelation

PATH = Graph.from_edges(3, [(0, 1), (1, 2)])
MESSAGES = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, -1.0]], dtype=np.float32)
SUMS = np.array([[0.0, 0.5], [1.0, -1.0], [0.0, 0.5]], dtype=np.float32)
OTHERS = [
    GridAttention(keys=MESSAGES, queries=MESSAGES),
    GridMax(),
    GridGcn(min_degree=1),
]


def charged(
    path: Path, graph: Graph = PATH, *, name: str = "path", relation: NodeRelation | None = None
) -> ChargedDoor:
    path.mkdir(exist_ok=True)
    account = open_graph_account(
        graph,
        name,
        ledger=Ledger(path / "ledger.sqlite", clock=lambda: 0.0),
        budget=Budget(epsilon=1.0, delta=1e-6),
        relation=relation,
        simulated=True,
    )
    return ChargedDoor(graph, account=account, noise=NoiseSource.for_simulation(0), run="test")


def test_an_open_door_sums_exactly_and_never_pretends_to_add_noise() -> None:
    assert np.array_equal(OpenDoor(PATH).release(MESSAGES, noise_std=0.0), SUMS)
    with pytest.raises(ValueError, match="adds no noise"):
        OpenDoor(PATH).release(MESSAGES, noise_std=1.0)


def test_a_charged_door_charges_every_release(tmp_path: Path) -> None:
    door = charged(tmp_path)
    released = door.release(MESSAGES, noise_std=8.0)
    assert released.shape == (3, 2)
    assert not np.array_equal(released, SUMS)
    assert door.account.spent.min() > 0
    with pytest.raises(BudgetError, match="Requested"):
        door.release(MESSAGES, noise_std=1.0)


def test_no_noise_is_refused_and_long_messages_cost_nothing(tmp_path: Path) -> None:
    door = charged(tmp_path)
    with pytest.raises(InputError):
        door.release(MESSAGES, noise_std=0.0)
    with pytest.raises(InputError, match="norm at most 1"):
        door.release(2 * MESSAGES, noise_std=8.0)
    assert door.account.spent.max() == 0


@pytest.mark.parametrize("graph", [PATH, Graph.from_edges(3, [(0, 1)])])
def test_the_name_decides_which_account_is_charged_and_the_edges_do_not(
    tmp_path: Path, graph: Graph
) -> None:
    charged(tmp_path).release(MESSAGES, noise_std=8.0)
    other = charged(tmp_path, graph, name="other")
    assert other.account.spent.max() == 0
    again = charged(tmp_path, graph)
    assert again.account.spent.min() > 0


def test_every_opening_records_the_version_of_the_graph_whether_it_is_new_or_not(
    tmp_path: Path,
) -> None:
    for graph in (PATH, PATH, Graph.from_edges(3, [(0, 1)])):
        door = charged(tmp_path, graph)
    entries = list(door.account.ledger.entries())
    assert [entry.facts["kind"] for entry in entries] == ["key", "graph", "budget"] + (
        3 * ["version"]
    )
    versions = [version_of(entry.facts) for entry in entries[3:]]
    assert versions[0] == versions[1] == version_of_graph(PATH, key=key_of(door.account.ledger))
    assert versions[2].edges != versions[0].edges


def test_a_run_with_a_reservation_is_charged_to_that(tmp_path: Path) -> None:
    door = charged(tmp_path)
    cost = GaussianRelease(noise_std=16.0).cost
    reserved = Reservation(plan="certified", planned_epsilon=0.5, releases=1, mu_squared=cost)
    door.account.reserve(reserved, run="test")
    with pytest.raises(
        BudgetError, match="epsilon at delta"
    ):  # the graph has enough left, the run has not
        door.release(MESSAGES, noise_std=15.9)
    door.release(MESSAGES, noise_std=16.0)
    with pytest.raises(BudgetError, match="Requested"):
        door.release(MESSAGES, noise_std=16.0)


def test_the_promised_degree_is_checked_before_anything_is_recorded(tmp_path: Path) -> None:
    star = Graph.from_edges(4, [(0, 1), (0, 2), (0, 3)])
    with pytest.raises(InputError, match="at most 2"):
        charged(tmp_path, star, relation=NodeRelation(max_degree=2, row_norm=1.0))
    with closing(open_to_read(tmp_path / "ledger.sqlite")) as ledger:
        assert [entry.facts["kind"] for entry in ledger.entries()] == ["key"]


def test_labels_have_no_door(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)
    labels = open_account(
        ledger,
        "labels",
        num_nodes=3,
        budget=Budget(epsilon=1.0, delta=1e-6),
        relation=LabelRelation(),
    )
    with pytest.raises(ValueError, match="got that of labels"):
        ChargedDoor(PATH, account=labels, noise=NoiseSource.for_simulation(0), run="test")


def test_a_charged_door_reports_spending_and_never_returns_the_graph(tmp_path: Path) -> None:
    door = charged(tmp_path)
    assert door.spending_summary() == "epsilon 0 of 1"
    door.release(MESSAGES, noise_std=8.0)
    assert door.spending_summary() == f"epsilon {door.account.spent_epsilon():.3g} of 1"
    with pytest.raises(ValueError, match="releases only"):
        door.uncertified_graph()
    assert OpenDoor(PATH).spending_summary() == ""


def test_noisy_edges_are_charged_once_and_never_returned_without_noise(tmp_path: Path) -> None:
    door = charged(tmp_path)
    with pytest.raises(ValueError, match="never returns a graph without noise"):
        door.perturb(None)
    assert door.spending_summary() == "epsilon 0 of 1"
    noisy = door.perturb(EdgeRand(epsilon=1.0))
    assert door.spending_summary() == "epsilon 1 of 1"
    assert noisy.num_nodes == 3
    assert door.account.spent_epsilon() == 1.0
    with pytest.raises(BudgetError, match="Requested"):
        door.perturb(EdgeRand(epsilon=0.5))


def test_too_many_noisy_edges_are_refused_before_they_are_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = charged(tmp_path)
    monkeypatch.setattr("vesper.mechanism.noisy_graph.rare_pairs.MAX_CELLS", 0)
    with pytest.raises(InputError, match="noisy cells"):
        door.perturb(EdgeRand(epsilon=1.0))
    assert door.account.spent_epsilon() == 0


def test_an_open_door_returns_the_graph_without_noise_only() -> None:
    assert OpenDoor(PATH).perturb(None) is PATH
    with pytest.raises(ValueError, match="adds no noise to edges"):
        OpenDoor(PATH).perturb(EdgeRand(epsilon=1.0))


def test_a_claimed_door_adds_the_given_noise_and_charges_nothing(tmp_path: Path) -> None:
    many = np.tile(MESSAGES, (1, 500))
    many /= np.linalg.norm(many, axis=1, keepdims=True)
    door = ClaimedDoor(PATH, noise=NoiseSource.for_simulation(0))
    noise = door.release(many, noise_std=2.0) - OpenDoor(PATH).release(many, noise_std=0.0)
    assert noise.std() == pytest.approx(2.0, rel=0.1)
    with pytest.raises(ValueError, match="use a charged door"):
        door.perturb(EdgeRand(epsilon=1.0))
    assert door.uncertified_graph() is PATH


def test_a_closed_door_gives_out_nothing() -> None:
    door = ClosedDoor()
    assert door.spending_summary() == ""
    with pytest.raises(ValueError, match="promised to read no edge"):
        door.release(MESSAGES, noise_std=0.0)
    with pytest.raises(ValueError, match="promised to read no edge"):
        door.perturb(None)
    with pytest.raises(ValueError, match="promised to read no edge"):
        door.uncertified_graph()


def test_a_charged_door_refuses_one_way_edges(tmp_path: Path) -> None:
    one_way = Graph(np.array([0, 1, 1, 1]), np.array([1], dtype=np.int32))
    with pytest.raises(InputError, match="one-way edges"):
        charged(tmp_path, one_way)


@pytest.mark.parametrize("aggregation", OTHERS)
def test_every_aggregation_is_charged_as_a_sum_and_named_in_the_ledger(
    tmp_path: Path, aggregation: Aggregation
) -> None:
    door, sum_door = charged(tmp_path / "a"), charged(tmp_path / "b")
    released = door.release(MESSAGES, noise_std=8.0, aggregation=aggregation)
    sum_door.release(MESSAGES, noise_std=8.0)
    assert released.shape == MESSAGES.shape
    assert door.account.spent.tolist() == sum_door.account.spent.tolist()
    with closing(open_to_read(tmp_path / "a" / "ledger.sqlite")) as ledger:
        assert list(ledger.entries())[-1].facts["aggregation"] == aggregation.name
    with closing(open_to_read(tmp_path / "b" / "ledger.sqlite")) as ledger:
        assert "aggregation" not in list(ledger.entries())[-1].facts


@pytest.mark.parametrize("aggregation", OTHERS)
def test_an_open_door_returns_the_aggregation_without_noise(aggregation: Aggregation) -> None:
    released = OpenDoor(PATH).release(MESSAGES, noise_std=0.0, aggregation=aggregation)
    expected = aggregation.aggregate(PATH, to_grid(MESSAGES), None) / aggregation.steps
    assert np.array_equal(released, expected)


def test_what_cannot_be_aggregated_costs_nothing(tmp_path: Path) -> None:
    door = charged(tmp_path)
    with pytest.raises(InputError, match="Expected 3 keys"):
        door.release(
            MESSAGES,
            noise_std=8.0,
            aggregation=GridAttention(keys=MESSAGES[:2], queries=MESSAGES[:2]),
        )
    assert door.account.spent.max() == 0


def test_the_node_relation_allows_sums_only(tmp_path: Path) -> None:
    door = charged(tmp_path, relation=NodeRelation(max_degree=4, row_norm=2.0))
    with pytest.raises(InputError, match="all edges of a node at once"):
        door.release(MESSAGES, noise_std=60.0, aggregation=GridMax())
    assert door.account.spent.max() == 0
