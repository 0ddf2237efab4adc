"""Report contents for tests: certified, simulated, edge-free, claimed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from vesper.method.base import NoisePlan
from vesper.report.budget_section import Charge, RunCharges
from vesper.report.contents import ClassEvaluation, Contents
from vesper.report.privacy import privacy_of
from vesper.session.config import load_config

NOISE_PLANS = {
    "certified": NoisePlan(
        plan="certified",
        certified_epsilon=4.0,
        claimed_epsilon=None,
        delta=1e-6,
        noise_stds=(2.4, 2.4),
    ),
    "edge-free": NoisePlan(
        plan="edge-free", certified_epsilon=0.0, claimed_epsilon=None, delta=None, noise_stds=()
    ),
    "paper": NoisePlan(
        plan="paper", certified_epsilon=None, claimed_epsilon=2.0, delta=1e-6, noise_stds=(0.5,)
    ),
    "none": NoisePlan(
        plan="none", certified_epsilon=None, claimed_epsilon=None, delta=None, noise_stds=(0.0,)
    ),
}
CHARGED = RunCharges(
    charges=(Charge(what="gaussian release: noise std 2.4"),),
    spent_epsilon=4.0,
    planned_epsilon=4.0,
    best_guess=0.66,
)


@pytest.fixture
def contents() -> Callable[..., Contents]:
    """Makes the contents of a report for a plan; keyword arguments replace single fields."""

    def make(
        plan: str = "certified", *, secure: bool = True, num_classes: int = 3, **changes: Any
    ) -> Contents:
        rng = np.random.default_rng(0)
        evaluation = ClassEvaluation(
            split="validation",
            classes=tuple(f"<class {k}>" for k in range(num_classes)),
            labels=rng.integers(0, num_classes, size=200),
            probabilities=rng.dirichlet(np.ones(num_classes), size=200),
        )
        run_charges = CHARGED if plan == "certified" else None
        fields: dict[str, Any] = {
            "method": "certified",
            "metric": "roc_auc" if num_classes == 2 else "accuracy",
            "validation": 88.25,
            "test": None,
            "chosen_stage": 1,
            "stages": ({"validation": 60.5}, {"validation": 88.25}, {"validation": 87.0}),
            "privacy": privacy_of(
                NOISE_PLANS[plan],
                has_secure_noise=secure,
                covers="this & that",
                run_charges=run_charges,
            ),
            "config": load_config(None, {}),
            "sizes": {"nodes": 1000, "classes": num_classes},
            "evaluation": evaluation,
        }
        return Contents(**{**fields, **changes})

    return make
