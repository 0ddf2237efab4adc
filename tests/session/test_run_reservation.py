"""What a run reserves: the whole cap, the epsilon of one pure release, or nothing."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from vesper.errors import BudgetError, InputError
from vesper.graph.edges.edge_relation import toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.door import open_graph_account
from vesper.method.base import PublicSizes
from vesper.method.settings import Config
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.participation import cap_for
from vesper.privacy.events import GaussianRelease, PureRelease
from vesper.privacy.ledger.account import Account
from vesper.privacy.ledger.reservation import open_runs, return_unused
from vesper.privacy.ledger.store import Ledger
from vesper.session.config import load_config
from vesper.session.run_reservation import noise_plans_for, planned_config, reserve_run

NODES = 12
RING = Graph.from_edges(NODES, [(k, (k + 1) % NODES) for k in range(NODES)])
SIZES = PublicSizes(num_nodes=NODES, num_train=6, num_features=4, num_classes=0)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)) as opened:
        yield opened


def config_of(method: str = "certified", **settings: object) -> Config:
    return load_config(None, {"method": method, "epsilon": 2.0, "delta": 1e-6, **settings})


def reserve(
    ledger: Ledger,
    config: Config | None = None,
    *,
    run: str = "r",
    graph: Graph = RING,
    name: str | None = "ring",
    is_simulated: bool = False,
) -> Account | None:
    config = config or config_of()
    return reserve_run(
        config,
        noise_plans_for(config, SIZES),
        graph,
        ledger,
        name=name,
        run=run,
        is_simulated=is_simulated,
    )


def charge(ledger: Ledger, event: PureRelease | GaussianRelease, *, run: str) -> None:
    open_graph_account(RING, "ring", ledger=ledger, simulated=False).charge(event, None, run=run)


def test_a_gaussian_run_reserves_the_whole_cap_of_its_epsilon(ledger: Ledger) -> None:
    account = reserve(ledger)
    assert account is not None
    reservation = account.reservations["r"].reservation
    assert reservation.planned_epsilon == 2.0
    assert reservation.mu_squared == cap_for(budget=Budget(epsilon=2.0, delta=1e-6))
    for noise_plan in noise_plans_for(config_of(), SIZES):  # whatever the number of classes is
        for noise_std in noise_plan.all_noise_stds:
            account.refuse_if_over_budget(
                GaussianRelease(noise_std=noise_std), b"A" + bytes([NODES]) + bytes(7), "r"
            )
        assert len(noise_plan.all_noise_stds) <= reservation.releases


def test_what_counts_have_spent_is_not_planned_for(ledger: Ledger) -> None:
    charge(ledger, PureRelease(epsilon=0.5, what="degree histogram"), run="degrees")
    account = reserve(ledger)
    assert account is not None
    assert account.reservations["r"].reservation.planned_epsilon == 1.5
    assert account.spent_epsilon() == 0.5


def test_counts_that_leave_nothing_are_refused_before_anything_is_written(ledger: Ledger) -> None:
    charge(ledger, PureRelease(epsilon=2.0, what="degree histogram"), run="degrees")
    head = ledger.head()
    with pytest.raises(BudgetError, match="which leaves nothing"):
        reserve(ledger)
    assert ledger.head() == head


@pytest.mark.parametrize("method", ["edgerand", "lapgraph"])
def test_one_pure_release_reserves_its_epsilon(ledger: Ledger, method: str) -> None:
    charge(ledger, PureRelease(epsilon=0.5, what="degree histogram"), run="degrees")
    account = reserve(ledger, config_of(method))
    assert account is not None
    held = account.reservations["r"]
    assert (held.reservation.pure_epsilon, held.is_pure) == (1.5, True)
    charge(ledger, PureRelease(epsilon=1.5, what="noisy edges"), run="r")
    assert account.left_pure_epsilon == 0.0


@pytest.mark.parametrize("is_returned", [False, True])
@pytest.mark.parametrize("method", ["edgerand", "certified"])
def test_a_resumed_run_plans_the_same_noise_whatever_was_charged_since(
    ledger: Ledger, method: str, is_returned: bool
) -> None:
    """Finding 9 of issue 30: neither its own charge nor later counts are subtracted from it."""
    budget = Budget(epsilon=2.0, delta=1e-6)
    open_graph_account(RING, "ring", ledger=ledger, budget=budget, simulated=False)
    config = config_of(method, epsilon=1.0)
    account = reserve(ledger, config)
    assert account is not None
    (noise_plan, _) = noise_plans_for(config, SIZES)
    event = PureRelease(epsilon=1.0, what="noisy edges")
    charge(
        ledger,
        GaussianRelease(noise_std=noise_plan.noise_stds[0]) if method == "certified" else event,
        run="r",
    )
    if is_returned:
        return_unused(ledger, run="r")
    charge(ledger, PureRelease(epsilon=0.25, what="degree histogram"), run="degrees")
    resumed = reserve(ledger, config)
    assert resumed is not None
    assert resumed.reservations["r"].reservation.planned_epsilon == 1.0


def test_a_second_run_that_does_not_fit_is_refused_and_leaves_no_trace(ledger: Ledger) -> None:
    reserve(ledger, run="first")
    head = ledger.head()
    with pytest.raises(BudgetError, match="reserved for runs: 2"):
        reserve(ledger, run="second")
    assert ledger.head() == head
    return_unused(ledger, run="first")
    reserve(ledger, run="second")
    assert open_runs(ledger) == {"second": "ring"}


@pytest.mark.parametrize("graph", [RING, toggle_edge(RING, (0, 5))])
def test_what_is_reserved_does_not_depend_on_whether_the_edges_are_known(
    ledger: Ledger, graph: Graph
) -> None:
    reserve(ledger, config_of(epsilon=0.5), name="other", run="older")  # with the edges of the ring
    charge(ledger, PureRelease(epsilon=0.25, what="degree histogram"), run="degrees")
    account = reserve(ledger, config_of(epsilon=1.0), graph=graph, name="new")
    assert account is not None
    assert account.reservations["r"].reservation.planned_epsilon == 1.0
    assert account.spent_epsilon() == 0


@pytest.mark.parametrize(("method", "plan"), [("gcn", "none"), ("paper-gcn", "paper")])
def test_what_certifies_nothing_reserves_nothing(ledger: Ledger, method: str, plan: str) -> None:
    config = config_of(method, **({"epsilon": float("inf")} if plan == "none" else {}))
    account = reserve(ledger, config)
    assert account is not None
    assert account.reservations["r"].reservation.plan == plan
    assert account.reserved_epsilon() == 0
    with pytest.raises(BudgetError, match="which certifies nothing"):
        reserve(ledger, run="certified run")


def test_methods_that_read_no_edge_need_no_name_and_open_no_account(ledger: Ledger) -> None:
    head = ledger.head()
    assert reserve(ledger, config_of("mlp"), name=None) is None
    assert ledger.head() == head
    with pytest.raises(InputError, match="expected a name for the graph"):
        reserve(ledger, name=None)


def test_simulated_and_secret_runs_do_not_share_a_name(ledger: Ledger) -> None:
    reserve(ledger, config_of(epsilon=0.5), is_simulated=True)
    with pytest.raises(InputError, match="use another name"):
        reserve(ledger, config_of(epsilon=0.5), run="secret")


def test_planned_settings_keep_the_hops_that_both_sides_know() -> None:
    config = config_of(hops=2)
    assert planned_config(config, None, hops=0) is config
    assert planned_config(config, 2.0, hops=2) is config
    planned = planned_config(config, 1.5, hops=1)
    assert (planned.privacy.epsilon, planned.privacy.hops) == (1.5, 1)
    assert planned_config(config, 1.5, hops=0).privacy.hops == 2
