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


def test_it_is_the_accountants_word() -> None:
    beside = paper_claim_for(epsilon=4.0, noise_std=2.8, delta=1e-6, num_layers=2, sizes=SIZES)
    assert isinstance(beside, PaperClaim)
    budget = Budget(epsilon=4.0, delta=1e-6)
    assert beside.noise_std == theorem_1.noise_std_for(training=TRAINING, budget=budget)
    assert beside.noise_ratio == beside.noise_std / 2.8
    assert beside.epsilon_at_certified_noise == theorem_1.claimed_epsilon(
        training=TRAINING, noise_std=2.8, delta=1e-6
    )
    assert beside.true_epsilon_lower_bound == true_epsilon_lower_bound(
        noise_std=beside.noise_std, num_epochs=5, delta=1e-6
    )


@pytest.mark.parametrize(
    ("epsilon", "why"),
    [(0.0, "no noise for an epsilon of 0"), (float("inf"), "of inf"), (0.01, "orders above 1024")],
)
def test_what_it_cannot_say_is_left_out_with_a_sentence(epsilon: float, why: str) -> None:
    beside = paper_claim_for(epsilon=epsilon, noise_std=9.0, delta=1e-6, num_layers=2, sizes=SIZES)
    assert isinstance(beside, str)
    assert why in beside


def test_a_small_epsilon_does_not_jump() -> None:
    # epsilon * noise falls slowly and without a step, until nothing is said any more
    products = []
    for epsilon in (0.1, 0.05, 0.04, 0.03, 0.02):
        beside = paper_claim_for(
            epsilon=epsilon, noise_std=9.0, delta=1e-6, num_layers=2, sizes=SIZES
        )
        assert isinstance(beside, PaperClaim)
        products.append(epsilon * beside.noise_std)
    for before, after in zip(products, products[1:], strict=False):
        assert 0.95 * before < after < before


def test_certified_noise_beyond_the_orders_is_not_spoken_of() -> None:
    beside = paper_claim_for(epsilon=1.0, noise_std=1e6, delta=1e-6, num_layers=2, sizes=SIZES)
    assert isinstance(beside, PaperClaim)
    assert beside.epsilon_at_certified_noise is None
