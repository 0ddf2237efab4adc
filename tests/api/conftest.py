"""A small graph whose neighbours are more informative than its features, and a fitted model."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from vesper import Vesper

SMALL = {"epochs": 6, "width": 16, "batch_size": 320, "learning_rate": 0.03}


@dataclass(frozen=True)
class Communities:
    """Three groups of 200 nodes, weak features, 20 neighbours each, 90 % of the same group."""

    edges: Any  # (2, E)
    features: Any
    labels: Any
    train: Any
    test: Any

    def fit(self, **parameters: Any) -> Vesper:
        settings = SMALL | parameters.pop("settings", {})
        model = Vesper(**{"epsilon": 8.0, **parameters}, settings=settings)
        return model.fit(self.edges, self.features, self.labels, train=self.train)


@pytest.fixture(scope="session")
def communities() -> Communities:
    rng = np.random.default_rng(0)
    n = 600
    groups = np.arange(n) % 3
    src = rng.integers(0, n, size=10 * n)
    same = rng.integers(0, n // 3, size=10 * n) * 3 + groups[src]
    dst = np.where(rng.random(10 * n) < 0.9, same, rng.integers(0, n, size=10 * n))
    order = rng.permutation(n)
    return Communities(
        edges=np.stack([src, dst]),
        features=rng.normal(size=(n, 4)) + 0.5 * np.eye(4)[groups],
        labels=np.array(["ant", "bee", "cat"])[groups],
        train=order[:400],
        test=order[400:],
    )


@pytest.fixture(scope="session")
def simulated(communities: Communities) -> Vesper:
    return communities.fit(seed=0, simulate_noise=True)
