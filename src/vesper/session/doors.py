"""Choice of the door of a run, with noise planned for what is left of the budget.

| plan | door |
| --- | --- |
| certified | charged; refused before anything is trained when its releases do not all fit |
| paper | claimed: noise as the paper counts it; the ledger notes that nothing is certified |
| edge-free | closed |
| none | open; the ledger notes it |

Earlier counts on the same ledger (`vesper degrees`), of whichever graph, are subtracted from
epsilon before noise is planned (claim L-FILTER: counts first).
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from vesper.errors import BudgetError
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations import rounding_of
from vesper.mechanism.door import ChargedDoor, ClaimedDoor, ClosedDoor, Door, OpenDoor
from vesper.mechanism.fingerprint import fingerprint
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.release_store import ReleaseStore, no_check
from vesper.method.base import NoisePlan
from vesper.method.noise_plan import budget_of, relation_for
from vesper.method.settings import Config
from vesper.privacy.accounting.safe_numbers import float_down
from vesper.privacy.events import Event, PureRelease
from vesper.privacy.ledger.account import Account, open_account
from vesper.privacy.ledger.balance import Balance
from vesper.privacy.ledger.reader import LedgerReader, epsilon_of_counts
from vesper.privacy.ledger.receipt import encode
from vesper.privacy.ledger.store import Ledger, key_of
from vesper.privacy.relation import LabelRelation
from vesper.session.run_spec import RunSpec


def open_door(
    run_spec: RunSpec,
    graph: Graph,
    ledger: Ledger,
    noise: NoiseSource,
    *,
    run: str,
    release_store: ReleaseStore | None = None,
    before_drawing: Callable[[], None] = no_check,
) -> tuple[Door, RunSpec]:
    """Open the door of the method's plan; return it with a run spec whose noise fits the budget.

    With a release store, releases that this run was already charged for come from there.

    Raises:
        BudgetError: what the method will release costs more than is left.
    """
    config, sizes = run_spec.config, run_spec.sizes
    budget = budget_of(config.privacy, sizes)
    noise_plan = run_spec.noise_plan
    if noise_plan.plan == "edge-free":
        return ClosedDoor(), run_spec
    if noise_plan.plan != "certified" or budget is None:
        note_unprotected(graph, ledger, run=run, plan=noise_plan.plan)
        if noise_plan.plan == "paper":
            return ClaimedDoor(graph, noise=noise, release_store=release_store), run_spec
        return OpenDoor(graph), run_spec
    refuse_spent_on_counts(config, ledger, run=run)
    door = ChargedDoor(
        graph,
        ledger=ledger,
        budget=budget,
        noise=noise,
        run=run,
        relation=relation_for(config.privacy),
        release_store=release_store,
        before_drawing=before_drawing,
    )
    left = with_remaining_epsilon(
        config, door.account, ledger, run=run, hops=len(noise_plan.noise_stds)
    )
    num_charged = door.account.charges_of(run) if release_store else 0
    fitting = run_spec if left is config else run_spec.planned_for(left)
    refuse_over_budget(
        door.account, fitting.noise_plan, epsilon=left.privacy.epsilon, num_charged=num_charged
    )
    # Earlier counts are part of the same epsilon: together, the guarantee is what was asked for.
    guaranteed = replace(fitting.noise_plan, certified_epsilon=noise_plan.certified_epsilon)
    return door, replace(fitting, noise_plan=guaranteed)


def note_unprotected(graph: Graph, ledger: Ledger, *, run: str, plan: str) -> None:
    """Note in the ledger, before anything leaves, that a run certifies nothing."""
    name = fingerprint(graph, key=key_of(ledger))
    open_account(ledger, name, num_nodes=graph.num_nodes).note_unprotected(run=run, plan=plan)


def refuse_spent_on_counts(config: Config, ledger: LedgerReader, *, run: str | None = None) -> None:
    """Refuse a run for which counts have left no epsilon, before its account is opened.

    Raises:
        BudgetError: counts have cost all of epsilon.
    """
    counts = epsilon_of_counts(ledger, before_run=run)
    if counts >= config.privacy.epsilon:
        raise BudgetError(
            f"Counts made under this ledger (`vesper degrees`) have cost {float(counts):g}, which "
            f"leaves nothing of epsilon {config.privacy.epsilon:g}. Raise epsilon, or use a "
            f"separate ledger for a new graph."
        )


def with_remaining_epsilon(
    config: Config, account: Balance, ledger: LedgerReader, *, run: str | None = None, hops: int = 0
) -> Config:
    """Return settings with the epsilon that earlier counts have left.

    Args:
        config: settings with the whole epsilon.
        account: balance of the graph.
        ledger: has the counts, of this graph and of others.
        run: name of the run; counts after its first charge do not matter to it.
        hops: number that both sides have agreed on, as it may follow from epsilon; 0: not yet.
    """
    spent = max(epsilon_of_counts(ledger, before_run=run), account.pure)
    left = float_down(Fraction(config.privacy.epsilon) - spent)
    if spent == 0 or left <= 0:
        return config  # `refuse_over_budget` reports what is spent
    changed = {"epsilon": left, "hops": hops or config.privacy.hops}
    privacy = config.privacy.model_copy(update=changed)
    return config.model_copy(update={"privacy": privacy})


def refuse_over_budget(
    account: Account, noise_plan: NoisePlan, *, epsilon: float, num_charged: int = 0
) -> None:
    """Refuse, before the first charge, releases that do not all fit the budget.

    Args:
        account: account of the graph.
        noise_plan: noise of all releases; without any: noisy edges, which are one pure release.
        epsilon: epsilon that the noise was planned for.
        num_charged: number of releases, from the first on, that were charged before.

    Raises:
        BudgetError: all releases together cost more than is left.
    """
    everyone = encode(None, len(account.spent))
    rest = noise_plan.all_noise_stds[num_charged:]
    if not noise_plan.all_noise_stds and not num_charged:
        event: Event = PureRelease(epsilon=epsilon, what="noisy edges")
        account.refuse_if_over_budget(event, everyone)
    if not rest:
        return
    together = math.fsum(noise_std**-2 for noise_std in rest) ** -0.5
    relation = account.relation
    assert not isinstance(relation, LabelRelation)
    event = relation.sums(noise_std=together, rounding=rounding_of(noise_plan.width))
    account.refuse_if_over_budget(event, everyone)
