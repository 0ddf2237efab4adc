"""The membership classifier on synthetic posteriors with a known answer."""

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.attack.node_membership import MembershipClassifier, certainty
from vesper.attack.roc import roc_of


def posteriors(sharpness: float, nodes: int, seed: int) -> NDArray[np.float64]:
    logits = sharpness * np.random.default_rng(seed).standard_normal((nodes, 5))
    odds = np.exp(logits)
    rows: NDArray[np.float64] = odds / odds.sum(axis=1, keepdims=True)
    return rows


def test_certainty_is_minus_the_entropy() -> None:
    result = certainty(np.array([[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]]))
    assert result == pytest.approx(
        [-np.log(2), 0.9 * np.log(0.9) + 0.1 * np.log(0.1), 0.0], abs=1e-9
    )


def test_overfit_members_are_recognised_whatever_their_class() -> None:
    classifier = MembershipClassifier(5, seed=0)
    classifier.learn(posteriors(6.0, 300, 0), posteriors(1.0, 200, 1))
    roc = roc_of(
        classifier.score(posteriors(6.0, 300, 2)), classifier.score(posteriors(1.0, 300, 3))
    )
    assert roc.auc > 0.95
    permuted = posteriors(6.0, 50, 4)
    assert np.array_equal(classifier.score(permuted), classifier.score(permuted[:, ::-1]))


def test_equal_distributions_are_not_distinguished() -> None:
    classifier = MembershipClassifier(5, seed=0)
    classifier.learn(posteriors(2.0, 300, 0), posteriors(2.0, 300, 1))
    roc = roc_of(
        classifier.score(posteriors(2.0, 600, 2)), classifier.score(posteriors(2.0, 600, 3))
    )
    assert abs(roc.auc - 0.5) < 0.07
