"""Reservation of a run: the most its releases may cost, set aside before its peer is contacted.

    planned epsilon    min(epsilon of the run, what counts have left of the budget of the graph)
    Gaussian releases  reserve the whole cap of the planned epsilon, for any number of classes
    one pure release   reserves the planned epsilon
    uncertified        reserves nothing, but excludes certified runs for as long as it is open

The planned epsilon is part of the entry: a resumed run, and one that serves what was released, plan
the same noise whatever was charged since. The account is found by its name, never by its edges, and
nothing is refused once a peer can watch (claim NON-INTERFERENCE).
"""

from collections.abc import Sequence
from dataclasses import replace

from vesper.errors import BudgetError, InputError
from vesper.graph.graph import Graph
from vesper.mechanism.door import checked_version
from vesper.method.base import NoisePlan, PublicSizes
from vesper.method.noise_plan import budget_of, relation_for
from vesper.method.options import refuse_aggregator
from vesper.method.registry import find_method
from vesper.method.settings import Config
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.participation import cap_for
from vesper.privacy.events import PureRelease
from vesper.privacy.ledger.account import Account, open_account
from vesper.privacy.ledger.graph_name import expect_graph_name
from vesper.privacy.ledger.reservation import RESERVED_KIND, Reservation, last_reservation
from vesper.privacy.ledger.store import Ledger

NUM_CLASSES_TO_CHECK = (2, 3)
"""Two, and more than two: noise plans depend on the number of classes only in this."""


def noise_plans_for(config: Config, sizes: PublicSizes) -> list[NoisePlan]:
    """Plan the noise for any number of classes, which only the label party knows."""
    method = find_method(config.run.method)
    refuse_aggregator(config)
    return [
        method.noise_plan(config, replace(sizes, num_classes=classes))
        for classes in NUM_CLASSES_TO_CHECK
    ]


def reserve_run(
    config: Config,
    noise_plans: Sequence[NoisePlan],
    graph: Graph,
    ledger: Ledger,
    *,
    name: str | None,
    run: str,
    is_simulated: bool,
) -> Account | None:
    """Open the account of a graph and reserve for a run what it may release; None: no edge is read.

    A run that has a reservation keeps it.

    Args:
        config: settings of the run.
        noise_plans: its noise; several if it is not known which of them it will be.
        graph: the private graph.
        ledger: of its owner.
        name: the name that its owner has given it.
        run: name of the run in the ledger.
        is_simulated: whether noise comes from a seed.

    Raises:
        InputError: the graph has no name or cannot be used, or its account has other terms.
        BudgetError: the run does not fit what is left; nothing was written.
    """
    plan = noise_plans[0].plan
    if plan == "edge-free":
        return None
    name = expect_graph_name(name)
    sizes = PublicSizes(num_nodes=graph.num_nodes, num_train=0, num_features=0, num_classes=2)
    budget = budget_of(config.privacy, sizes)
    is_certified = plan == "certified" and budget is not None
    relation = relation_for(config.privacy) if is_certified else None
    version = checked_version(graph, ledger=ledger, relation=relation)
    with ledger.transaction():
        _refuse_other_name(ledger, name, run=run)
        account = open_account(
            ledger,
            name,
            num_nodes=graph.num_nodes,
            version=version,
            budget=budget if is_certified else None,
            relation=relation,
            simulated=is_simulated,
        )
        if not is_certified:
            account.reserve(Reservation(plan=plan), run=run)
            return account
        assert budget is not None
        earlier = last_reservation(ledger.entries(), run=run)
        planned = None if earlier is None else earlier.planned_epsilon
        planned = min(budget.epsilon, account.left_pure_epsilon) if planned is None else planned
        if planned <= 0:
            raise BudgetError(
                f"What was released of graph '{name}' without Gaussian noise (`vesper degrees`, "
                f"noisy edges) has cost epsilon {float(account.pure):g}, which leaves nothing. "
                f"Nothing was released. Set a larger budget (`vesper budget set`), or use a new "
                f"snapshot."
            )
        is_pure = not noise_plans[0].all_noise_stds
        cap = cap_for(
            budget=Budget(epsilon=planned, delta=budget.delta), rows=account.relation.rows
        )
        event = PureRelease(epsilon=planned, what="noisy edges")
        account.reserve(
            Reservation(
                plan=plan,
                planned_epsilon=planned,
                releases=max(len(each.all_noise_stds) for each in noise_plans) or 1,
                mu_squared=event.cost if is_pure else cap,
                pure_epsilon=planned if is_pure else 0.0,
            ),
            run=run,
        )
    return account


def _refuse_other_name(ledger: Ledger, name: str, *, run: str) -> None:
    """Refuse to continue a run under another name: it would be charged to two budgets."""
    for entry in ledger.entries():
        if entry.run == run and entry.facts["kind"] == RESERVED_KIND and entry.graph != name:
            raise InputError(
                f"name of the graph: this run began under '{entry.graph}', got '{name}'; continue "
                f"it under the name that it began with"
            )


def planned_config(config: Config, planned_epsilon: float | None, *, hops: int) -> Config:
    """Return settings with the epsilon that noise is planned for.

    Args:
        config: settings with the whole epsilon.
        planned_epsilon: as reserved; None: nothing is certified.
        hops: number that both sides have agreed on, as it may follow from epsilon; 0: not yet.
    """
    if planned_epsilon is None or planned_epsilon == config.privacy.epsilon:
        return config
    changed = {"epsilon": planned_epsilon, "hops": hops or config.privacy.hops}
    privacy = config.privacy.model_copy(update=changed)
    return config.model_copy(update={"privacy": privacy})
