"""Results in a notebook: never called certified where noise is simulated."""

from dataclasses import replace

import pytest

from vesper.method.base import NoisePlan
from vesper.session.result import SECURE, LabelResult, PrivacyFacts, privacy_facts_of

CERTIFIED = NoisePlan(
    plan="certified",
    certified_epsilon=4.0,
    claimed_epsilon=None,
    delta=1e-6,
    noise_stds=(2.4,),
)


def result_with(privacy: PrivacyFacts) -> LabelResult:
    return LabelResult(
        method="<certified>",
        metric="roc_auc",
        validation=88.25,
        test=None,
        chosen_stage=1,
        stages=[],
        seconds=3.0,
        peak_memory_bytes=0,
        bytes_sent=0,
        session="ab",
        privacy=privacy,
    )


def test_a_notebook_shows_metric_and_guarantee() -> None:
    shown = result_with(privacy_facts_of(CERTIFIED, source=SECURE))._repr_html_()
    assert "Result at the label party" in shown
    assert "88.2 %" in shown
    assert "certified: epsilon 4, delta 1e-06 for each edge" in shown
    assert "&lt;certified&gt;" in shown
    assert ">test<" not in shown, "it is not known"


def test_simulated_noise_guarantees_nothing() -> None:
    shown = result_with(privacy_facts_of(CERTIFIED))._repr_html_()
    assert "none, as the noise is simulated; otherwise epsilon 4" in shown
    assert "certified:" not in shown


@pytest.mark.parametrize(
    ("plan", "claimed", "words"),
    [
        ("edge-free", None, "no edge is read"),
        ("paper", 2.0, "epsilon 2 is claimed"),
        ("none", None, "none"),
        ("paper", float("inf"), "none"),
    ],
)
def test_plans_without_a_certificate(plan: str, claimed: float | None, words: str) -> None:
    noise_plan = replace(CERTIFIED, plan=plan, certified_epsilon=None, claimed_epsilon=claimed)
    guarantee = privacy_facts_of(noise_plan).guarantee
    assert words in guarantee
    assert "certified:" not in guarantee
