from pathlib import Path

import numpy as np
import pytest

from vesper.errors import BudgetError, InputError
from vesper.graph.edges.edge_relation import toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.aggregation import Aggregation
from vesper.mechanism.aggregations.clamped_gcn import GridGcn
from vesper.mechanism.aggregations.grid import STEPS
from vesper.mechanism.aggregations.maximum import GridMax
from vesper.mechanism.aggregations.neighbor_sum import NeighborSum
from vesper.mechanism.fingerprint import fingerprint
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.release import PROVED_AGGREGATIONS, release
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import ClippedRelease, GaussianRelease
from vesper.privacy.ledger.account import Account, open_account
from vesper.privacy.ledger.receipt import Receivers
from vesper.privacy.ledger.statement import CLAIMS
from vesper.privacy.ledger.store import Ledger

STAR = Graph.from_edges(4, [(0, 1), (0, 2), (0, 3)])
MESSAGES = np.full((4, 1), STEPS, dtype=np.int8)
EVENT = GaussianRelease(noise_std=2.0)


@pytest.fixture
def account(tmp_path: Path) -> Account:
    ledger = Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)
    return open_account(ledger, "star", num_nodes=4, budget=Budget(epsilon=8.0, delta=1e-6))


def released(account: Account, graph: Graph = STAR, seed: int = 0) -> list[float]:
    receipt = account.charge(EVENT, None, run="test")
    noise = NoiseSource.for_simulation(seed)
    values = release(
        graph, MESSAGES, None, event=EVENT, receipt=receipt, account="star", noise=noise
    )
    return [float(value) for value in values[:, 0]]


def test_a_release_is_the_sum_plus_the_noise_of_its_source(account: Account) -> None:
    noise = np.zeros(4, dtype=np.int32)
    NoiseSource.for_simulation(7).add_gaussian_to(noise, scale=2.0 * STEPS)
    expected = np.array([3, 1, 1, 1]) + noise / STEPS
    assert released(account, seed=7) == pytest.approx(expected.tolist())


def test_two_graphs_one_edge_apart_differ_in_the_endpoints_only(account: Account) -> None:
    difference = np.subtract(
        released(account, seed=7), released(account, toggle_edge(STAR, (2, 0)), seed=7)
    )
    assert difference == pytest.approx([1, 0, 1, 0])


def test_a_receipt_is_valid_once_and_for_its_own_release_only(account: Account) -> None:
    receipt = account.charge(EVENT, None, run="test")
    noise = NoiseSource.for_simulation(0)
    weaker = GaussianRelease(noise_std=1.0)
    some = np.array([0, 1])
    for event, name, receivers in (
        (weaker, "star", None),
        (EVENT, "another", None),
        (EVENT, "star", some),
    ):
        with pytest.raises(BudgetError, match="another release"):
            release(
                STAR,
                MESSAGES,
                receivers,
                event=event,
                receipt=receipt,
                account=name,
                noise=noise,
            )
    release(STAR, MESSAGES, None, event=EVENT, receipt=receipt, account="star", noise=noise)
    with pytest.raises(BudgetError, match="already used"):
        release(STAR, MESSAGES, None, event=EVENT, receipt=receipt, account="star", noise=noise)


def test_long_messages_are_refused_before_an_edge_is_read(account: Account) -> None:
    receipt = account.charge(EVENT, None, run="test")
    with pytest.raises(InputError, match="sum of squares"):
        release(
            STAR,
            np.full((4, 2), STEPS, dtype=np.int8),
            None,
            event=EVENT,
            receipt=receipt,
            account="star",
            noise=NoiseSource.for_simulation(0),
        )


def test_the_fingerprint_is_keyed_and_covers_every_edge() -> None:
    names = {fingerprint(STAR, key=b"a" * 32), fingerprint(STAR, key=b"b" * 32)}
    names |= {fingerprint(toggle_edge(STAR, edge), key=b"a" * 32) for edge in [(0, 1), (1, 2)]}
    assert len(names) == 4
    assert fingerprint(STAR, key=b"a" * 32) == fingerprint(STAR, key=b"a" * 32)


def test_there_is_one_message_per_node(account: Account) -> None:
    receipt = account.charge(EVENT, None, run="test")
    with pytest.raises(InputError, match="Expected 4 messages, got 2"):
        release(
            STAR,
            MESSAGES[:2],
            None,
            event=EVENT,
            receipt=receipt,
            account="star",
            noise=NoiseSource.for_simulation(0),
        )


class Unproved(NeighborSum):
    """An aggregation without a claim."""


def test_an_aggregation_is_released_under_its_own_name_and_to_all_nodes(account: Account) -> None:
    noise = NoiseSource.for_simulation(0)
    named = GaussianRelease(noise_std=8.0, aggregation="clamped gcn")
    some = np.array([0, 1])

    def attempt(
        event: GaussianRelease, aggregation: Aggregation, receivers: Receivers = None
    ) -> None:
        release(
            STAR,
            MESSAGES,
            receivers,
            event=event,
            receipt=account.charge(event, receivers, run="test"),
            account="star",
            noise=noise,
            aggregation=aggregation,
        )

    attempt(named, GridGcn(min_degree=1))
    with pytest.raises(BudgetError, match="charge it to every node"):
        attempt(named, GridGcn(min_degree=1), some)
    attempt(GaussianRelease(noise_std=8.0, aggregation="maximum"), GridMax(), some)
    with pytest.raises(BudgetError, match="another aggregation"):
        attempt(GaussianRelease(noise_std=8.0), GridMax())
    with pytest.raises(BudgetError, match="smaller shift"):
        attempt(
            GaussianRelease(noise_std=8.0, endpoint_shift=0.5, aggregation="maximum"), GridMax()
        )
    with pytest.raises(BudgetError, match="No claim bounds"):
        attempt(GaussianRelease(noise_std=8.0), Unproved())


def test_every_aggregation_has_its_claim_in_statements_and_its_proof() -> None:
    assert {each.name for each in PROVED_AGGREGATIONS} == set(CLAIMS)
    proofs = Path(__file__).parents[2] / "docs" / "claims"
    for each in PROVED_AGGREGATIONS:
        assert (
            f"`{each.__module__}.{each.__name__}`"
            in (proofs / f"{CLAIMS[each.name][0]}.md").read_text()
        )


def test_only_sums_can_be_clipped(account: Account) -> None:
    event = ClippedRelease(noise_std=8.0, row_norm=2.0, rounding=0.1)
    with pytest.raises(BudgetError, match="another aggregation"):
        release(
            STAR,
            MESSAGES,
            None,
            event=event,
            receipt=account.charge(event, None, run="test"),
            account="star",
            noise=NoiseSource.for_simulation(0),
            aggregation=GridMax(),
        )
