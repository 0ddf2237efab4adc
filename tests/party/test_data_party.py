from pathlib import Path

import numpy as np
import pytest

from vesper.errors import BudgetError
from vesper.graph.graph import Graph
from vesper.mechanism.noise import NoiseSource
from vesper.model.encoder import MlpEncoder, initialize
from vesper.model.pre import PrivateRepresentationExtractor
from vesper.party.data_party import DataParty, Spending
from vesper.privacy.account import Account, open_account
from vesper.privacy.budget import Budget
from vesper.privacy.events import GaussianRelease
from vesper.privacy.ledger import Ledger
from vesper.privacy.participation import noise_std_for
from vesper.protocol.digest import digest_of
from vesper.protocol.messages import Gradients, Purpose

RING = Graph.from_edges(12, [(k, (k + 1) % 12) for k in range(12)])
FEATURES = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
BUDGET = Budget(epsilon=2.0, delta=1e-6)


@pytest.fixture
def account(tmp_path: Path) -> Account:
    ledger = Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)
    return open_account(ledger, "ring", num_nodes=12, budget=BUDGET)


def party(account: Account, hops: int = 2) -> DataParty:
    encoder = MlpEncoder(4, width=8, dropout=0.0, seed=0)
    extractor = PrivateRepresentationExtractor(encoder, num_classes=3, hops=hops, degree_share=0.3)
    initialize(extractor, 0)
    event = GaussianRelease(noise_std=noise_std_for(budget=BUDGET, releases=hops))
    spending = Spending(account, event, NoiseSource.for_simulation(0), run="test")
    return DataParty(
        RING, FEATURES, extractor, spending=spending, learning_rate=0.01, weight_decay=0.0
    )


def test_a_stage_is_charged_once_however_often_roots_are_sent(account: Account) -> None:
    made = party(account)
    made.begin_stage(0)
    made.release(np.arange(12), purpose=Purpose.TRAIN)
    assert account.spent.max() == 0
    made.begin_stage(1)
    spent = account.spent.copy()
    assert spent.min() > 0
    for _ in range(5):
        made.release(np.array([3, 1]), purpose=Purpose.EVALUATE)
    assert account.spent.tolist() == spent.tolist()


def test_a_release_beyond_the_budget_is_refused_and_nothing_changes(account: Account) -> None:
    made = party(account)
    for stage in range(3):
        made.begin_stage(stage)
    before = made.release(np.arange(12), purpose=Purpose.EVALUATE).values
    with pytest.raises(BudgetError, match="Requested"):
        made.begin_stage(1)
    assert np.array_equal(made.release(np.arange(12), purpose=Purpose.EVALUATE).values, before)


def test_roots_are_rows_of_the_roster(account: Account) -> None:
    made = party(account)
    made.begin_stage(0)
    everyone = made.release(np.arange(12), purpose=Purpose.EVALUATE).values
    made.meet(np.array([7, 2, 5]))
    sent = made.release(np.array([2, 0]), purpose=Purpose.EVALUATE)
    assert np.allclose(sent.values, everyone[[5, 7]], atol=1e-6)
    assert sent.roots_digest == digest_of(np.array([2, 0]))


def test_learning_changes_and_restoring_brings_back(account: Account) -> None:
    made = party(account)
    made.begin_stage(0)
    roots = np.array([0, 1, 2])
    sent = made.release(roots, purpose=Purpose.TRAIN)
    made.learn(Gradients(step=sent.step, values=np.ones_like(sent.values)))
    changed = made.release(roots, purpose=Purpose.EVALUATE).values
    assert not np.array_equal(changed, sent.values)
    made.restore()
    assert np.array_equal(made.release(roots, purpose=Purpose.EVALUATE).values, sent.values)


def test_gradients_without_embeddings_are_a_mistake(account: Account) -> None:
    made = party(account)
    made.begin_stage(0)
    sent = made.release(np.array([0]), purpose=Purpose.EVALUATE)
    with pytest.raises(ValueError, match="without embeddings"):
        made.learn(Gradients(step=sent.step, values=sent.values))


def test_released_values_are_data_no_gradient_reaches_them(account: Account) -> None:
    made = party(account)
    made.begin_stage(0)
    made.begin_stage(1)
    sent = made.release(np.arange(12), purpose=Purpose.TRAIN)
    assert made._sent is not None
    assert made._sent.requires_grad
    made.learn(Gradients(step=sent.step, values=np.ones_like(sent.values)))
    assert not made._released.requires_grad
    assert made._released.grad_fn is None
