"""The budget check compares what a run will cost with what is left, and charges nothing."""

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vesper.deployment.config.party_config import PartyConfig, load_party_config
from vesper.deployment.preflight import check_budget
from vesper.errors import BudgetError, InputError, VesperError
from vesper.graph.holdings import DataHoldings, open_data
from vesper.mechanism.door import open_graph_account
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import Event, GaussianRelease, PureRelease
from vesper.privacy.ledger.account import Account, open_account
from vesper.privacy.ledger.reader import DEGREES
from vesper.privacy.ledger.reservation import Reservation
from vesper.privacy.ledger.store import Ledger

if TYPE_CHECKING:
    from tests.conftest import Institutions

GRAPH = "payments"
BUDGET = Budget(epsilon=4.0, delta=1e-3)
Configure = Callable[..., PartyConfig]


@pytest.fixture
def data(institutions: "Institutions") -> DataHoldings:
    return open_data(institutions.data / "data")


@pytest.fixture
def configure(institutions: "Institutions") -> Configure:
    """Make the data party's settings, with these lines of [privacy] and this method."""

    def make(privacy: str = "", *, method: str = "certified", epsilon: str = "4.0") -> PartyConfig:
        path = institutions.settings[0]
        text = path.read_text().replace("#delta =", "delta = 1e-3\n#", 1)
        text = text.replace("epsilon = 4.0", f"epsilon = {epsilon}\n{privacy}", 1)
        changed = path.with_name(f"changed-{method}-{epsilon}.toml")
        changed.write_text(text.replace('method = "certified"', f'method = "{method}"'))
        return load_party_config(changed)

    return make


def charge(
    config: PartyConfig, data: DataHoldings, event: Event | None = None, *, name: str = GRAPH
) -> None:
    with closing(Ledger(config.party.ledger, clock=time.time)) as ledger:
        account = opened(ledger, data, name)
        if event is not None:
            account.charge(event, None, run="before")


def opened(ledger: Ledger, data: DataHoldings, name: str) -> Account:
    return open_graph_account(data.graph, name, ledger=ledger, budget=BUDGET, simulated=False)


def entries(config: PartyConfig) -> int:
    with closing(Ledger(config.party.ledger, clock=time.time)) as ledger:
        return ledger.head()[0]


def test_a_missing_ledger_is_not_created(configure: Configure, data: DataHoldings) -> None:
    config = configure()
    ledger = config.party.ledger
    text = check_budget(config, data)
    assert text == (
        f"graph 'payments': the run may use epsilon 4 of 4 at delta 0.001; epsilon 0 is spent "
        f"already; {ledger} will be created"
    )
    assert not ledger.exists()
    elsewhere = {"ledger": ledger.parent / "none" / "ledger.sqlite"}
    party = config.party.model_copy(update=elsewhere)
    with pytest.raises(InputError, match="its folder is missing or cannot be written"):
        check_budget(config.model_copy(update={"party": party}), data)


def test_a_graph_without_a_name(configure: Configure, data: DataHoldings) -> None:
    config = configure()
    nameless = config.model_copy(update={"party": config.party.model_copy(update={"graph": None})})
    with pytest.raises(InputError, match=r"expected a name for the graph .* party\.graph"):
        check_budget(nameless, data)


def test_an_unspent_budget(configure: Configure, data: DataHoldings) -> None:
    config = configure()
    charge(config, data)
    before = entries(config)
    assert check_budget(config, data).endswith("; epsilon 0 is spent already")
    assert entries(config) == before


def test_earlier_charges_are_reported(configure: Configure, data: DataHoldings) -> None:
    config = configure()
    charge(config, data, PureRelease(epsilon=0.5, what="count"))
    text = check_budget(config, data)
    assert "the run may use epsilon 3.5 of 4" in text
    assert text.endswith("; epsilon 0.5 is spent already")


def test_what_another_run_has_reserved_is_not_left(
    configure: Configure, data: DataHoldings
) -> None:
    config = configure()
    with closing(Ledger(config.party.ledger, clock=time.time)) as ledger:
        whole = Reservation(plan="certified", planned_epsilon=4.0, releases=1, pure_epsilon=4.0)
        opened(ledger, data, GRAPH).reserve(whole, run="another")
    before = entries(config)
    with pytest.raises(BudgetError, match=r"leaves nothing|does not allow this"):
        check_budget(config, data)
    assert entries(config) == before


def test_counts_that_leave_nothing(configure: Configure, data: DataHoldings) -> None:
    config = configure()
    charge(config, data, PureRelease(epsilon=4.0, what=DEGREES))
    before = entries(config)
    with pytest.raises(BudgetError, match="has cost epsilon 4, which leaves nothing"):
        check_budget(config, data)
    assert entries(config) == before


def test_counts_under_another_name_leave_everything_and_the_owner_is_warned(
    configure: Configure, data: DataHoldings
) -> None:
    config = configure()
    charge(config, data, PureRelease(epsilon=4.0, what=DEGREES), name="another")
    text = check_budget(config, data)
    assert "the run may use epsilon 4 of 4" in text
    assert "NOTE: graph 'payments' shares all of its edges with graph 'another'" in text


@pytest.mark.parametrize("method", ["edgerand", "lapgraph"])
def test_noisy_edges_are_one_pure_release(
    configure: Configure, data: DataHoldings, method: str
) -> None:
    config = configure(method=method)
    charge(config, data)
    assert check_budget(config, data).endswith("; epsilon 0 is spent already")
    charge(config, data, PureRelease(epsilon=4.0, what="randomised edges"))
    with pytest.raises(BudgetError, match="leaves nothing"):
        check_budget(config, data)


def test_charges_for_one_edge_have_no_known_cost_for_a_node(
    configure: Configure, data: DataHoldings
) -> None:
    config = configure('privacy_unit = "node"\nmax_degree = 59')
    with closing(Ledger(config.party.ledger, clock=time.time)) as book:
        account = open_account(book, GRAPH, num_nodes=len(data.ids))
        account.charge(PureRelease(epsilon=0.5, what=DEGREES), None, run="degrees")
    with pytest.raises(InputError, match=r"a pure release, has no cost for .* another name"):
        check_budget(config, data)


def test_a_spent_budget(configure: Configure, data: DataHoldings) -> None:
    config = configure()
    charge(config, data, GaussianRelease(noise_std=20.0))
    before = entries(config)
    with pytest.raises(BudgetError, match="does not allow this"):
        check_budget(config, data)
    assert entries(config) == before


def test_a_run_is_a_part_of_the_budget_of_its_graph(
    configure: Configure, data: DataHoldings
) -> None:
    config = configure(epsilon="2.0")
    charge(config, data)
    assert "the run may use epsilon 2 of 4 at delta 0.001" in check_budget(config, data)
    larger = configure(epsilon="5.0")
    with pytest.raises(InputError, match=r"a budget of epsilon 4, .* got epsilon 5, .*stay within"):
        check_budget(larger, data)


def test_plans_that_charge_nothing(configure: Configure, data: DataHoldings) -> None:
    for config, plan in (
        (configure(method="mlp"), "edge-free"),
        (configure(epsilon="inf"), "none"),
    ):
        assert check_budget(config, data).startswith(f"plan '{plan}': nothing is charged")


def test_a_ledger_that_was_changed(configure: Configure, data: DataHoldings) -> None:
    config = configure()
    charge(config, data)
    ledger: Path = config.party.ledger
    ledger.with_name(f"{ledger.name}.key").unlink()
    with pytest.raises(VesperError, match="key"):
        check_budget(config, data)
    ledger.write_text("hello, this is no ledger at all")
    with pytest.raises(InputError, match="cannot be used as a ledger"):
        check_budget(config, data)
