"""Will the releases of a run fit what is left of the graph's budget? Looks, and charges nothing.

How many classes there are only the label party knows; where a method's releases depend on it, the
dearer case must fit.
"""

import os
import time
from contextlib import closing
from pathlib import Path

from vesper.errors import InputError, VesperError
from vesper.graph.holdings import DataHoldings
from vesper.mechanism.fingerprint import fingerprint
from vesper.method.aggregators import refuse_aggregator
from vesper.method.budgeting import budget_of, relation_for
from vesper.method.method import Promise, Sizes
from vesper.method.registry import find_method
from vesper.method.settings import Config
from vesper.privacy.account import Account, accounts
from vesper.privacy.budget import Budget
from vesper.privacy.key import key_of
from vesper.privacy.ledger import Ledger
from vesper.privacy.relation import GraphRelation
from vesper.run.doors import refuse_counted_out, refuse_early, within

NUMBERS_OF_CLASSES = (2, 3)
"""Two, and more than two: what plans differ by."""


def budget_for_run(config: Config, data: DataHoldings, ledger: Path) -> str:
    """Say what the run will cost and what is left.

    Raises:
        InputError: the ledger cannot be used, or the graph has another budget in it.
        BudgetError: the run would cost more than is left.
        VesperError: the ledger was changed or cannot be written.
    """
    promises = _promises(config, data)
    budget = budget_of(config.privacy, _sizes(data, NUMBERS_OF_CLASSES[0]))
    if promises[0].plan != "certified" or budget is None:
        _refuse_unwritable(ledger)
        after = (
            "" if promises[0].plan == "edge-free" else ", nor for this graph in its ledger after"
        )
        return f"plan '{promises[0].plan}': nothing is charged, and nothing is certified{after}"
    stated = f"the run may use epsilon {budget.epsilon:g} at delta {budget.delta:g}"
    if not ledger.exists():
        _refuse_unwritable(ledger)
        return f"{stated}; {ledger} will be made"
    with closing(Ledger(ledger, clock=time.time)) as book:
        with book.transaction():
            pass  # the right to write, without writing
        broken = book.verify()
        if broken is not None:
            raise VesperError(f"{ledger}: entry {broken} was changed; nothing is charged to it")
        refuse_counted_out(config, book)
        account = _account(book, data, budget, relation_for(config.privacy))
        left = within(config, account, book)
        for promise in _promises(left, data):
            refuse_early(account, promise, epsilon=left.privacy.epsilon)
        return f"{stated}, and spent is {account.spent_epsilon():.4g}"


def _account(book: Ledger, data: DataHoldings, budget: Budget, relation: GraphRelation) -> Account:
    """The account as the run will open it, without an entry for it."""
    graph = fingerprint(data.graph, key=key_of(book))
    for balance in accounts(book):
        if balance.graph == graph and (balance.budget, balance.relation) not in (
            (None, balance.relation),
            (budget, relation),
        ):
            held = balance.budget
            assert held is not None
            raise InputError(
                f"{book.path}: this graph has a budget of epsilon {held.epsilon:g}, delta "
                f"{held.delta:g} for {balance.relation} already, the contract asks for epsilon "
                f"{budget.epsilon:g}, delta {budget.delta:g} for {relation}; a budget is "
                f"not set twice: mend [privacy], or use a new snapshot"
            )
    for entry in book.entries():
        if entry.graph == graph and entry.cost > 0 and not relation.admits(entry.facts):
            raise InputError(
                f"{book.path}: this graph was charged for a {entry.facts['kind']}, which has no "
                f"known cost for {relation}; use a ledger of its own, and count both"
            )
    num_nodes = data.graph.num_nodes
    return Account(book, graph, num_nodes=num_nodes, budget=budget, relation=relation)


def _promises(config: Config, data: DataHoldings) -> list[Promise]:
    method = find_method(config.run.method)
    refuse_aggregator(config)
    return [method.promise(config, _sizes(data, classes)) for classes in NUMBERS_OF_CLASSES]


def _sizes(data: DataHoldings, num_classes: int) -> Sizes:
    return Sizes(
        num_nodes=data.graph.num_nodes,
        num_train=data.graph.num_nodes,
        num_features=data.features.shape[1],
        num_classes=num_classes,
    )


def _refuse_unwritable(ledger: Path) -> None:
    if not ledger.parent.is_dir() or not os.access(ledger.parent, os.W_OK | os.X_OK):
        raise InputError(
            f"{ledger}: cannot be made, its folder is not there or cannot be written; mend "
            f"party.ledger or the rights"
        )
