from itertools import pairwise

import pytest

from vesper.privacy.accounting import theorem_1
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.planning.paper_plan import (
    PaperClaim,
    PaperSizes,
    paper_claim_for,
    true_epsilon_lower_bound,
)

SIZES = PaperSizes(num_train_nodes=196_615, batch_size=256, max_degree=20, num_epochs=5)
TRAINING = theorem_1.PaperTraining(
    num_train_nodes=196_615, batch_size=256, max_degree=20, num_layers=2, num_epochs=5
)


def test_the_claim_is_that_of_the_papers_accountant() -> None:
    claim = paper_claim_for(epsilon=4.0, noise_std=2.8, delta=1e-6, num_layers=2, sizes=SIZES)
    assert isinstance(claim, PaperClaim)
    budget = Budget(epsilon=4.0, delta=1e-6)
    assert claim.noise_std == theorem_1.noise_std_for(training=TRAINING, budget=budget)
    assert claim.noise_ratio == claim.noise_std / 2.8
    assert claim.epsilon_at_certified_noise == theorem_1.claimed_epsilon(
        training=TRAINING, noise_std=2.8, delta=1e-6
    )
    assert claim.true_epsilon_lower_bound == true_epsilon_lower_bound(
        noise_std=claim.noise_std, num_epochs=5, delta=1e-6
    )


@pytest.mark.parametrize(
    ("epsilon", "why"),
    [(0.0, "no noise for an epsilon of 0"), (float("inf"), "of inf"), (0.01, "orders above 1024")],
)
def test_a_claim_that_cannot_be_computed_is_replaced_by_a_reason(epsilon: float, why: str) -> None:
    claim = paper_claim_for(epsilon=epsilon, noise_std=9.0, delta=1e-6, num_layers=2, sizes=SIZES)
    assert isinstance(claim, str)
    assert why in claim


def test_a_small_epsilon_does_not_jump() -> None:
    # epsilon * noise decreases slowly and without a jump, as long as there is a claim
    products = []
    for epsilon in (0.1, 0.05, 0.04, 0.03, 0.02):
        claim = paper_claim_for(
            epsilon=epsilon, noise_std=9.0, delta=1e-6, num_layers=2, sizes=SIZES
        )
        assert isinstance(claim, PaperClaim)
        products.append(epsilon * claim.noise_std)
    for before, after in pairwise(products):
        assert 0.95 * before < after < before


def test_no_epsilon_for_certified_noise_beyond_the_largest_order() -> None:
    claim = paper_claim_for(epsilon=1.0, noise_std=1e6, delta=1e-6, num_layers=2, sizes=SIZES)
    assert isinstance(claim, PaperClaim)
    assert claim.epsilon_at_certified_noise is None
