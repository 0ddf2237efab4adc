from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import BudgetError, InputError
from vesper.graph.edges.edge_relation import all_pairs
from vesper.graph.graph import Graph
from vesper.mechanism.degree_histogram import (
    CUMULATIVE_SENSITIVITY,
    LAST_BIN,
    PLAIN_SENSITIVITY,
    DegreeHistogram,
    cost_of,
    fit_non_increasing,
    release_histogram,
)
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.privacy.ledger.account import open_account
from vesper.privacy.ledger.store import Ledger

STAR = Graph.from_edges(101, [(0, k) for k in range(1, 100)])


def histogram(
    folder: Path, graph: Graph, epsilon: float, *, seed: int = 0, as_paper: bool = False
) -> DegreeHistogram:
    ledger = Ledger(folder / "ledger.sqlite", clock=lambda: 0.0)
    account = open_account(ledger, "g", num_nodes=graph.num_nodes)
    event = cost_of(epsilon, as_paper=as_paper)
    return release_histogram(
        graph,
        event=event,
        receipt=account.charge(event, None, run="degrees"),
        account="g",
        noise=NoiseSource.for_simulation(seed),
        as_paper=as_paper,
    )


def plain(graph: Graph) -> list[int]:
    return [int((np.diff(graph.indptr) == k).sum()) for k in range(7)]


def cumulative(graph: Graph) -> list[int]:
    return [int((np.diff(graph.indptr) >= k).sum()) for k in range(1, 7)]


def test_sensitivities_on_all_graphs_up_to_five_nodes() -> None:
    moves = [
        tuple(
            sum(abs(a - b) for a, b in zip(count(first), count(second), strict=True))
            for count in (plain, cumulative)
        )
        for n in range(2, 6)
        for first, second, _ in all_pairs(n)
    ]
    assert max(move for move, _ in moves) == PLAIN_SENSITIVITY  # the paper prints 2
    assert {move for _, move in moves} == {CUMULATIVE_SENSITIVITY}


def test_with_little_noise_it_is_the_histogram(tmp_path: Path) -> None:
    released = histogram(tmp_path, STAR, 100.0)
    assert released.counts[0] == 1
    assert released.counts[1] == 99
    assert released.counts[LAST_BIN] == 1
    assert sum(released.counts) == STAR.num_nodes
    assert released.isolated_share == 1 / 101


def test_with_much_noise_it_is_still_a_histogram(tmp_path: Path) -> None:
    for seed in range(20):
        counts = histogram(tmp_path, STAR, 0.05, seed=seed).counts
        assert min(counts) >= 0
        assert sum(counts) == pytest.approx(STAR.num_nodes)


def test_it_is_charged_and_the_papers_scale_costs_twice(tmp_path: Path) -> None:
    assert cost_of(0.1).epsilon == 0.1
    assert cost_of(0.1, as_paper=True).epsilon == 0.2
    histogram(tmp_path, STAR, 0.1, as_paper=True)
    entries = list(Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0).entries())
    assert entries[-1].facts["epsilon"] == 0.2
    assert entries[-1].cost == cost_of(0.2).cost


def test_a_receipt_of_another_event_is_refused(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)
    account = open_account(ledger, "g", num_nodes=STAR.num_nodes)
    receipt = account.charge(cost_of(0.1), None, run="degrees")
    with pytest.raises(BudgetError):
        release_histogram(
            STAR,
            event=cost_of(1.0),
            receipt=receipt,
            account="g",
            noise=NoiseSource.for_simulation(0),
        )


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=12))
def test_the_fit_is_non_increasing_keeps_the_mean_and_is_nearest(values: list[float]) -> None:
    given_values = np.array(values)
    fitted = fit_non_increasing(given_values)
    assert (np.diff(fitted) <= 1e-9).all()
    assert fitted.mean() == pytest.approx(given_values.mean(), abs=1e-9)
    rng = np.random.default_rng(0)
    distance = np.square(fitted - given_values).sum()
    for _ in range(50):
        other = np.sort(fitted + rng.normal(size=len(fitted)))[::-1]
        assert np.square(other - given_values).sum() >= distance - 1e-9


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1e-5, 500.0, float("nan"), 2097160.5432])
def test_epsilons_that_cannot_be_drawn_are_refused_before_they_are_charged(epsilon: float) -> None:
    with pytest.raises(InputError):
        cost_of(epsilon)
