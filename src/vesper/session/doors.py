"""Choice of the door of a run, with noise planned for what the run has reserved.

| plan | door |
| --- | --- |
| certified | charged; refused before anything is trained when its releases do not all fit |
| paper | claimed: noise as the paper counts it; the ledger notes that nothing is certified |
| edge-free | closed |
| none | open; the ledger notes it |
"""

from collections.abc import Callable
from dataclasses import replace

from vesper.graph.graph import Graph
from vesper.mechanism.door import ChargedDoor, ClaimedDoor, ClosedDoor, Door, OpenDoor
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.release_store import ReleaseStore, no_check
from vesper.privacy.ledger.account import Account
from vesper.privacy.ledger.store import Ledger
from vesper.session.run_reservation import planned_config, reserve_run
from vesper.session.run_spec import RunSpec


def open_door(
    run_spec: RunSpec,
    graph: Graph,
    ledger: Ledger,
    noise: NoiseSource,
    *,
    name: str | None,
    run: str,
    release_store: ReleaseStore | None = None,
    before_drawing: Callable[[], None] = no_check,
) -> tuple[Door, RunSpec]:
    """Reserve for a run unless it has reserved before, and open the door of its method's plan.

    With a release store, releases that this run was already charged for come from there. Whoever
    opens a door returns what is left of the reservation (`return_unused`) when the run has ended.

    Args:
        run_spec: of the run.
        graph: the private graph.
        ledger: of its owner.
        noise: where noise comes from.
        name: the name of the graph; only methods that read no edge need none.
        run: name of the run in the ledger.
        release_store: where releases are stored.
        before_drawing: called before new noise is drawn; raises to refuse.

    Returns:
        The door, and the run spec with noise that fits behind it.

    Raises:
        InputError: the graph has no name or cannot be used, or its account has other terms.
        BudgetError: the run does not fit what is left.
    """
    account = reserve_run(
        run_spec.config,
        [run_spec.noise_plan],
        graph,
        ledger,
        name=name,
        run=run,
        is_simulated=not noise.is_private,
    )
    if account is None:
        return ClosedDoor(), run_spec
    if account.reservations[run].reservation.is_certified:
        door = ChargedDoor(
            graph,
            account=account,
            noise=noise,
            run=run,
            release_store=release_store,
            before_drawing=before_drawing,
        )
        return door, reserved_run_spec(run_spec, account, run=run)
    plan = run_spec.noise_plan.plan
    account.note_unprotected(run=run, plan=plan)
    if plan == "paper":
        return ClaimedDoor(graph, noise=noise, release_store=release_store), run_spec
    return OpenDoor(graph), run_spec


def reserved_run_spec(run_spec: RunSpec, account: Account, *, run: str) -> RunSpec:
    """Plan the noise of a run for the epsilon that it has reserved."""
    return run_spec_within(run_spec, account.reservations[run].reservation.planned_epsilon)


def run_spec_within(run_spec: RunSpec, planned_epsilon: float | None) -> RunSpec:
    """Plan the noise of a run for an epsilon that is at most its own; state its own epsilon.

    Earlier counts are part of the same budget: together, the guarantee is what was asked for.
    """
    noise_plan = run_spec.noise_plan
    planned = planned_config(run_spec.config, planned_epsilon, hops=len(noise_plan.noise_stds))
    if planned is run_spec.config:
        return run_spec
    fitting = run_spec.planned_for(planned)
    stated = replace(fitting.noise_plan, certified_epsilon=noise_plan.certified_epsilon)
    return replace(fitting, noise_plan=stated)
