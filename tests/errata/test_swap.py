"""Erratum 3 on running code: the layer, sampler and noise of `paper-gin`, at claimed 1.

Two hubs have D leaves each and may be neighbours of each other. Messages of hubs are +1, those of
all others -1. Without the edge, a hub has D neighbours and its row is 1 - D. With it, the sampler
takes D of D + 1 neighbours, including the other hub with chance D / (D + 1), and then the row is
3 - D:

    row ~ N(1 - D, noise_std^2)   against   (1 - q) N(1 - D, ..) + q N(3 - D, ..),   q = D / (D + 1)

Each hub is a root once per epoch, and the label party, which knows its batches, adds up the
logarithms of the exact ratios.
"""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from vesper.audit.bound import guesses
from vesper.graph.graph import Graph
from vesper.mechanism.sampled.layers import LayerNoise, SampledGraph
from vesper.model.message_passing import PmpLayer, UnitWeight
from vesper.privacy.planning.paper_plan import PAPER_DATASETS, compare

PRODUCTS = PAPER_DATASETS[0]
MAX_DEGREE = PRODUCTS.max_degree
RUNS = 500
THRESHOLD = 2.0
"""Log likelihood ratio above which the audit guesses that the edge exists; fixed beforehand."""


def hubs(*, has_edge: bool) -> Graph:
    """RUNS separate pairs of hubs; hub h is node h, its leaves come after all hubs."""
    first = np.arange(0, 2 * RUNS, 2)
    between = np.stack([first, first + 1], axis=1) if has_edge else np.empty((0, 2), dtype=int)
    leaves = np.arange(2 * RUNS * MAX_DEGREE)
    to_leaves = np.stack([leaves // MAX_DEGREE, 2 * RUNS + leaves], axis=1)
    return Graph.from_edges(2 * RUNS * (1 + MAX_DEGREE), np.concatenate([between, to_leaves]))


def log_ratios(*, has_edge: bool, noise_std: float, seed: int) -> NDArray[np.float64]:
    """Log ratio of the world with the edge to the one without, for each pair of hubs: (RUNS,)."""
    sampled = SampledGraph(
        hubs(has_edge=has_edge),
        aggregator="gin",
        num_layers=1,
        max_degree=MAX_DEGREE,
        min_degree=1,
        seed=seed,
    )
    layer = PmpLayer(UnitWeight(1, 1, exact=True, seed=0), None)
    torch.nn.init.ones_(layer.unit_weight.weight)
    noise, roots = LayerNoise(noise_std=noise_std, seed=seed), np.arange(2 * RUNS)
    chance, plain, total = MAX_DEGREE / (MAX_DEGREE + 1), 1.0 - MAX_DEGREE, np.zeros(RUNS)
    for epoch in range(PRODUCTS.num_epochs):
        batch = sampled.sample(roots, step=epoch)
        messages = torch.from_numpy(np.where(batch.nodes < len(roots), 1.0, -1.0)).float()
        with torch.no_grad():
            values = noise.perturb(
                layer.pre_activation(messages[:, None], batch.layers[0])
            )  # (roots, 1)
        seen = values.double().numpy().reshape(RUNS, 2)
        ratio = np.exp((2 * (seen - plain) - 2) / noise_std**2)  # mean plain + 2 to mean plain
        total += np.log1p(chance * (ratio - 1)).sum(axis=1)
    return total


def audited(*, noise_std: float) -> tuple[int, int, float]:
    """Number of detections and of false alarms, and a 95 % lower bound on epsilon."""
    counts = guesses(
        log_ratios(has_edge=True, noise_std=noise_std, seed=3),
        log_ratios(has_edge=False, noise_std=noise_std, seed=4),
        threshold=THRESHOLD,
    )
    epsilon = counts.epsilon(delta=PRODUCTS.delta, confidence=0.95)
    return counts.detections, counts.false_alarms, epsilon


def test_3_an_audit_of_the_running_code_at_claimed_one() -> None:
    noise_std = compare(dataset=PRODUCTS, layers=1, epsilon=1.0).paper_noise_std
    detections, false_alarms, epsilon = audited(noise_std=noise_std)
    # Some tolerance, because libraries round differently.
    assert (detections, false_alarms) == pytest.approx((287, 6), abs=3)
    assert epsilon == pytest.approx(3.0, abs=0.4)


def test_3_the_audit_is_silent_where_noise_suffices() -> None:
    noise_std = compare(dataset=PRODUCTS, layers=1, epsilon=1.0).paper_noise_std
    assert audited(noise_std=8 * noise_std)[2] < 1.0
