"""The guarantee for one edge, in numbers and in words."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from scipy.stats import norm

from vesper.privacy.accounting.gaussian import delta_of, mu_of
from vesper.report.budget_section import best_guess, best_guess_gaussian, best_guess_with_counts
from vesper.report.contents import Contents
from vesper.report.registry_record import Publisher, registry_record
from vesper.report.sections import privacy_figures, privacy_section
from vesper.report.words import UPPER_BOUND, labels_of, meaning_of, not_covered
from vesper.session.config import load_config

Make = Callable[..., Contents]


@pytest.mark.parametrize("mu", [0.0, 0.2, 1.0, 3.0])
def test_best_guess_gaussian_is_that_of_the_best_test(mu: float) -> None:
    assert best_guess_gaussian(mu=mu) == pytest.approx(norm.cdf(mu / 2))


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 4.0])
def test_epsilon_and_delta_never_understate_the_best_guess(epsilon: float) -> None:
    for mu in (0.1, 1.0, 2.0):
        bound = best_guess(epsilon=epsilon, delta=delta_of(mu=mu, epsilon=epsilon))
        assert bound >= best_guess_gaussian(mu=mu) - 1e-12
    assert best_guess(epsilon=epsilon, delta=0.0) == pytest.approx(
        math.exp(epsilon) / (1 + math.exp(epsilon))
    )


@pytest.mark.parametrize("pure", [0.0, 0.1, 2.0])
@pytest.mark.parametrize("mu", [0.0, 0.5, 2.0])
def test_counts_before_releases_count(pure: float, mu: float) -> None:
    both = best_guess_with_counts(pure=pure, mu=mu)
    assert both >= max(best_guess_gaussian(mu=mu), best_guess(epsilon=pure, delta=0.0)) - 1e-12
    # A strong attack: randomised response, then one sample of N(0, 1) or N(mu, 1).
    truthful = 1 / (1 + math.exp(-pure))  # probability that the response is right
    threshold = math.log(truthful / (1 - truthful)) / mu if mu else math.copysign(math.inf, pure)
    right = truthful * norm.cdf(mu / 2 + threshold) + (1 - truthful) * norm.cdf(mu / 2 - threshold)
    assert both >= right - 1e-12
    if mu == 0.0 or pure == 0.0:
        assert both == pytest.approx(right if pure or mu else 0.5)


def test_the_bet_follows_from_the_guarantee(contents: Make) -> None:
    assert contents().privacy.best_guess == 0.66
    assert contents(secure=False).privacy.best_guess == 1.0
    assert contents("paper").privacy.best_guess == 1.0
    assert contents("edge-free", secure=False).privacy.best_guess == 0.5


def test_without_a_ledger_the_bet_is_that_of_the_planned_noise(contents: Make) -> None:
    charged = contents().privacy
    for planned in (
        replace(charged, run_charges=None),
        replace(charged, run_charges=None, is_upper_bound=True),
    ):
        assert planned.best_guess == pytest.approx(norm.cdf(mu_of(epsilon=4.0, delta=1e-6) / 2))
        assert planned.best_guess < best_guess(epsilon=4.0, delta=1e-6) - 0.3
    pure = replace(charged, run_charges=None, noise_stds=(), delta=0.0)
    assert pure.best_guess == best_guess(epsilon=4.0, delta=0.0)


def test_the_page_of_the_party_without_the_ledger_says_that_its_numbers_are_bounds(
    contents: Make,
) -> None:
    charged = contents()
    bound = replace(charged.privacy, run_charges=None, is_upper_bound=True)
    page = privacy_section(bound, charged.config)
    assert "at least 2.4, 2.4" in page
    assert UPPER_BOUND in page
    page = privacy_section(charged.privacy, charged.config)
    assert "at least 2.4" not in page
    assert UPPER_BOUND not in page


def test_only_certified_noise_from_the_operating_system_is_private(contents: Make) -> None:
    assert contents().privacy.is_private
    assert contents("edge-free", secure=False).privacy.is_private
    for plan in ("paper", "none"):
        assert not contents(plan).privacy.is_private
        assert contents(plan).privacy.epsilon == math.inf
    assert not contents(secure=False).privacy.is_private
    assert contents("paper").privacy.noise.endswith("not certified")


def test_all_edges_of_a_node(contents: Make) -> None:
    report = contents()
    privacy = replace(report.privacy, unit="node")
    assert privacy.verdict.endswith("for all edges of any one node together.")
    words = " ".join([*meaning_of(privacy), *not_covered(privacy)])
    assert "Consider all edges of any one node." in words
    assert "More than one node at a time." in words
    assert "More than one edge at a time." not in words
    loss = registry_record(privacy, report.config, Publisher())["deployment"]["privacy_loss"]
    assert loss["privacy_unit"] == "Node-level, with all its edges"


def test_labels_by_randomised_response() -> None:
    words = labels_of(load_config(None, {"label_epsilon": 2.0}))
    assert "one randomised response: <b>epsilon 2</b>" in words
    assert "Not protected" not in words


def test_labels_that_are_not_protected() -> None:
    assert "learns the labels of training nodes" in labels_of(load_config(None, {}))
    assert "gradients reveal" in labels_of(load_config(None, {"label_messages": False}))


def test_figures_name_the_unit_of_epsilon(contents: Make) -> None:
    report = contents()
    assert privacy_figures(report.privacy, report.config)[0] == ("certified epsilon", "4")
    nodes = replace(report.privacy, unit="node", is_private=False)
    labels = load_config(None, {"label_epsilon": 2.0})
    assert privacy_figures(nodes, labels) == [
        ("epsilon per node, if noise were not simulated", "4"),
        ("delta", "1e-06"),
        ("epsilon per label", "2"),
    ]
    assert nodes.verdict.endswith("for all edges of any one node together.")
    for plan in ("edge-free", "none"):
        assert len(privacy_figures(contents(plan).privacy, labels)) == 2


def test_a_notebook_shows_the_verdict(contents: Make) -> None:
    shown = contents().privacy._repr_html_()
    assert "Certified: epsilon 4" in shown
    assert "66.0 % at most" in shown
    assert "this &amp; that" in shown
    assert "Not private" in contents(secure=False).privacy._repr_html_()
