"""Errata 9, 11 and 15: the degree histogram, runs that were not charged, and GAP."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.graph.edges.edge_relation import all_pairs
from vesper.graph.graph import Graph
from vesper.mechanism.reference.linear import degrees_of
from vesper.privacy.accounting.gaussian import epsilon_of, mu_of
from vesper.privacy.accounting.pure import (
    CUMULATIVE_DEGREES_L1,
    DEGREE_HISTOGRAM_L1,
    laplace_epsilon_for,
)
from vesper.privacy.accounting.renyi import epsilon_of_rdp, gaussian_rdp, order_grid
from vesper.privacy.accounting.safe_numbers import bracket, safe_side
from vesper.privacy.planning.paper_plan import PAPER_DATASETS, PaperDataset, compare

every_dataset = pytest.mark.parametrize("dataset", PAPER_DATASETS, ids=lambda d: str(d.name))


def histogram(graph: Graph, *, last: int) -> NDArray[np.int64]:
    """Number of nodes of degree 0, .., last - 1, and of degree `last` or more."""
    return np.bincount(np.minimum(degrees_of(graph), last), minlength=last + 1)


def test_9_the_histogram_moves_by_four_and_cumulative_counts_by_two() -> None:
    lasts = (1, 2, 3, 50)
    plain: dict[int, int] = dict.fromkeys(lasts, 0)
    cumulative: dict[int, int] = dict.fromkeys(lasts, 0)
    for first, second, _ in all_pairs(5):
        for last in lasts:
            difference = histogram(first, last=last) - histogram(second, last=last)
            plain[last] = max(plain[last], int(np.abs(difference).sum()))
            at_least = np.cumsum(difference[::-1])[:-1]  # #{degree >= k} for k = last, .., 1
            cumulative[last] = max(cumulative[last], int(np.abs(at_least).sum()))
    assert set(plain.values()) == {DEGREE_HISTOGRAM_L1} == {4}
    assert set(cumulative.values()) == {CUMULATIVE_DEGREES_L1} == {2}


def test_9_the_figures_cost_twice_what_they_say() -> None:
    scale = 2 / 0.1  # as printed
    cost = laplace_epsilon_for(l1_sensitivity=DEGREE_HISTOGRAM_L1, scale=scale)
    assert cost == pytest.approx(0.2)


@every_dataset
def test_11_ten_runs_at_one_cost_three_and_a_half(dataset: PaperDataset) -> None:
    mu = mu_of(epsilon=1.0, delta=dataset.delta)
    total = epsilon_of(mu=math.sqrt(10) * mu, delta=dataset.delta)
    expected = {"products": 3.41, "reddit": 3.41, "finance": 3.50}[dataset.name]
    assert total == pytest.approx(expected, abs=0.01)


@every_dataset
def test_15_gap_needs_less_noise_than_its_correction(dataset: PaperDataset) -> None:
    row = compare(dataset=dataset, layers=2, epsilon=1.0)
    expected = {"products": 7.1, "reddit": 7.9, "finance": 1.17}[dataset.name]
    assert row.paper_noise_std / row.certified_noise_std == pytest.approx(expected, rel=0.01)


@every_dataset
def test_15_gap_published_at_four_is_five_and_a_half_to_six(dataset: PaperDataset) -> None:
    exact = mu_of(epsilon=4.0, delta=dataset.delta)
    assert 5.8 < epsilon_of(mu=math.sqrt(2) * exact, delta=dataset.delta) < 5.95
    # Calibrated through Renyi orders, as published, it has a little more noise.
    orders = order_grid()

    def holds(noise_multiplier: float) -> bool:
        rdp = gaussian_rdp(orders=orders, noise_multiplier=noise_multiplier)
        return epsilon_of_rdp(orders=orders, rdp=rdp, delta=dataset.delta)[0] <= 4.0

    safe, unsafe = bracket(holds, start=1.0, factor=2.0)
    noise_multiplier = safe_side(holds, safe=safe, unsafe=unsafe, relative_gap=1e-9)
    true = epsilon_of(mu=math.sqrt(2) / noise_multiplier, delta=dataset.delta)
    assert true == pytest.approx(5.55, abs=0.02)
