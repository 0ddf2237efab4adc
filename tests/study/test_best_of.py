"""The best configuration is chosen at each epsilon, and named."""

import math

from vesper.study.best_of import best_scores, keys_with_best
from vesper.study.cell import Score

CONFIGURATIONS = {("d", "GIN", 4.0): ["GIN: a", "GIN: b"], ("d", "GIN", 8.0): ["GIN: a", "GIN: b"]}


def test_each_epsilon_has_its_own_best() -> None:
    values = {("GIN: a", 4.0): 50.0, ("GIN: b", 4.0): 60.0, ("GIN: a", 8.0): 70.0}
    scores = {
        ("d", series, epsilon): Score(mean, math.nan, 1)
        for (series, epsilon), mean in values.items()
    }
    best = best_scores(scores, CONFIGURATIONS)
    assert (best["d", "GIN", 4.0].mean, best["d", "GIN", 4.0].configuration) == (60.0, "b")
    assert (best["d", "GIN", 8.0].mean, best["d", "GIN", 8.0].configuration) == (70.0, "a")
    assert best_scores({}, CONFIGURATIONS) == {}


def test_the_best_curve_comes_before_its_configurations() -> None:
    keys = (
        ("d", "MLP", math.inf),
        ("d", "GIN: a", 4.0),
        ("d", "GIN: b", 4.0),
        ("d", "GIN: a", 8.0),
    )
    ordered = keys_with_best(keys, CONFIGURATIONS)
    assert ordered[:3] == (("d", "MLP", math.inf), ("d", "GIN", 4.0), ("d", "GIN", 8.0))
    assert ordered[3:] == keys[1:]
