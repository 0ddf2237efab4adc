"""The ledger of a party on the network, and what its run reserves there before it has a peer."""

import time

from vesper.deployment.config.party_config import PartyConfig
from vesper.graph.holdings import DataHoldings
from vesper.method.base import NoisePlan, PublicSizes
from vesper.privacy.ledger.account import Account
from vesper.privacy.ledger.graph_name import expect_graph_name
from vesper.privacy.ledger.store import Ledger
from vesper.session.run_reservation import noise_plans_for, reserve_run

HOW_TO_NAME = "party.graph in the settings, or with --graph NAME"


def open_party_ledger(config: PartyConfig) -> Ledger:
    """Open the ledger of a party, with its witness if it has one.

    Raises:
        InputError: the file is not a ledger, or its key is lost.
        VesperError: the ledger is older than what was charged.
    """
    own = config.party
    return Ledger(own.ledger, clock=time.time, witness=own.witness)


def refuse_unnamed_graph(config: PartyConfig, data: DataHoldings) -> None:
    """Refuse a run that reads edges of a graph without a name, before a ledger is created.

    Raises:
        InputError: the graph has no name.
    """
    if _noise_plans(config, data)[0].plan != "edge-free":
        expect_graph_name(config.party.graph, how=HOW_TO_NAME)


def reserve_for_party(
    config: PartyConfig, data: DataHoldings, ledger: Ledger, *, run: str, is_simulated: bool
) -> Account | None:
    """Reserve for the run of a data party; None: its method reads no edge.

    Raises:
        InputError: the graph has no name or cannot be used, or its account has other terms.
        BudgetError: the run does not fit what is left; nothing was written.
    """
    refuse_unnamed_graph(config, data)
    return reserve_run(
        config.shared,
        _noise_plans(config, data),
        data.graph,
        ledger,
        name=config.party.graph,
        run=run,
        is_simulated=is_simulated,
    )


def _noise_plans(config: PartyConfig, data: DataHoldings) -> list[NoisePlan]:
    sizes = PublicSizes(
        num_nodes=data.graph.num_nodes,
        num_train=data.graph.num_nodes,
        num_features=data.features.shape[1],
        num_classes=0,
    )
    return noise_plans_for(config.shared, sizes)
