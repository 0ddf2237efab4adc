"""Label inference: complete where labels are open, otherwise limited by epsilon."""

from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import pytest

from vesper.attack.label_inference import KNOWS_GRADIENTS, KNOWS_LABEL_POSTERIORS, attack_labels
from vesper.errors import InputError
from vesper.privacy.accounting.randomized_response import flip_probability, keep_probability

if TYPE_CHECKING:
    from tests.attack.conftest import MakeRun

EPSILON = 1.0
KEEP = keep_probability(epsilon=EPSILON, num_classes=3)
FLIP = flip_probability(epsilon=EPSILON, num_classes=3)
BEST = 0.5 + (KEEP - FLIP) / 2
"""Expected AUC of the best attack: the true class has probability KEEP, each other one FLIP."""


@pytest.mark.parametrize(
    ("settings", "knows", "draws"),
    [
        ({}, KNOWS_LABEL_POSTERIORS, 1),
        ({"label_messages": False}, KNOWS_GRADIENTS, 1),
        ({"method": "paper-gin"}, KNOWS_GRADIENTS, 6),  # with twelve known labels: 0.76 to 0.99
        ({"method": "mlp"}, KNOWS_GRADIENTS, 1),
    ],
)
def test_open_labels_are_inferred(
    folders: Path, make_run: "MakeRun", settings: dict[str, object], knows: str, draws: int
) -> None:
    run = make_run(**settings)
    results = [attack_labels(run, folders, seed=seed) for seed in range(draws)]
    assert results[0].knows == knows
    assert results[0].epsilon == float("inf")
    least = 0.9 if draws == 1 else 0.82  # which labels the attacker knows is random
    assert fmean(each.roc.auc for each in results) > least


@pytest.mark.parametrize(
    ("settings", "least"),
    [
        ({}, 0.55),
        ({"label_messages": False}, 0.55),
        ({"method": "paper-gin"}, 0.4),  # directions from twelve labels
    ],
)
def test_no_more_than_randomised_responses_is_inferred(
    folders: Path, make_run: "MakeRun", settings: dict[str, object], least: float
) -> None:
    result = attack_labels(make_run(**settings, label_epsilon=EPSILON), folders)
    assert least < result.roc.auc < BEST + 0.1  # the seed is fixed; random error is about 0.04
    assert result.epsilon == EPSILON


def test_numbers_are_refused(folders: Path, make_run: "MakeRun") -> None:
    with pytest.raises(InputError, match="expected a run with classes as labels"):
        attack_labels(make_run(task="regression"), folders)
