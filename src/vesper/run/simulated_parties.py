"""The data parties of a simulation: each with its folder, ledger, noise and door."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from vesper.errors import InputError
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import LabelHoldings
from vesper.graph.summary import refuse_unknown_labels
from vesper.mechanism.door import ChargedDoor
from vesper.mechanism.noise import NoiseSource
from vesper.method.method import Promise
from vesper.method.settings import Config
from vesper.privacy.ledger import Ledger
from vesper.progress import Progress, silent
from vesper.run.agreement import Agreement, agree, refuse_other_stages
from vesper.run.doors import open_door
from vesper.run.later_party import Successors
from vesper.run.pair import Holder
from vesper.run.result import PartyFacts, facts_of
from vesper.run.setup.data_parties import ONE, SimulatedParty, config_for

STREAM = 1 << 80
"""Added to the seed for each further party: no two share the bits of their noise."""


@dataclass(frozen=True)
class Simulated:
    """A data party before its door is open."""

    settings: SimulatedParty
    config: Config
    data: DataHoldings
    agreement: Agreement
    promise: Promise
    """For the whole of its epsilon."""
    folder: Path
    """Of the simulation; with a folder of this party in it."""
    seed: int
    """Of its noise; no two parties have the same."""

    def facts(self, holder: Holder) -> PartyFacts:
        """What it was promised, with the noise that was drawn, and what it has spent."""
        agreed, door = holder.agreement, holder.door
        planned = agreed.method.promise(agreed.config, agreed.sizes)
        drawn = replace(planned, certified_epsilon=self.promise.certified_epsilon)
        privacy = facts_of(drawn, label_epsilon=self.config.privacy.label_epsilon)
        return PartyFacts(
            self.settings.name,
            own=self.settings.own,
            privacy=privacy,
            spent_epsilon=door.account.spent_epsilon() if isinstance(door, ChargedDoor) else None,
        )


def open_parties(
    parties: Sequence[SimulatedParty],
    folder: Path,
    config: Config,
    labels: LabelHoldings,
    *,
    progress: Progress = silent,
) -> list[Simulated]:
    """Open all folders and agree with each, before a file is made.

    Raises:
        InputError: a folder cannot be used, or the parties do not fit together.
    """
    _refuse_shared_ledgers(parties)
    opened = []
    for number, party in enumerate(parties):
        own = config_for(config, party)
        data = open_data(folder / party.place, progress=progress)
        refuse_unknown_labels(data.ids, labels)
        agreement = agree(own, data, labels)
        promise = agreement.method.promise(own, agreement.sizes)
        seed = config.run.seed + number * STREAM
        opened.append(Simulated(party, own, data, agreement, promise, folder, seed))
    itineraries = [each.agreement.itinerary for each in opened]
    refuse_other_stages([party.name for party in parties], itineraries)
    if itineraries[0].num_test == 0:
        raise InputError(
            f"{labels.path}, column split: expected some rows with 'test', found none; a run says "
            f"how good it is on nodes that it was not chosen by"
        )
    return opened


@contextmanager
def doors_of(
    opened: Sequence[Simulated], out: Path, *, run: str, ledger: Path | None
) -> Iterator[tuple[list[Holder], list[Successors]]]:
    """Open a ledger and a door for each, and for graphs that come later behind the same ledger.

    Args:
        opened: the data parties.
        out: folder of the run; ledgers are made there.
        run: what ledgers call the run.
        ledger: the only party's, elsewhere; of several, each may name one in its settings.

    Raises:
        BudgetError: what a party will release costs more than is left of its budget.
    """
    with ExitStack() as stack:
        holders, successors = [], []
        for each in opened:
            path = ledger or each.settings.ledger or out / ledger_name(each.settings)
            book = stack.enter_context(closing(Ledger(path, clock=time.time)))
            noise = NoiseSource.for_simulation(each.seed)
            door, agreement = open_door(each.agreement, each.data.graph, book, noise, run=run)
            holder = Holder(agreement, each.data, door, each.settings.name)
            holders.append(holder)
            place = each.settings.place
            successors.append(
                Successors(holder, each.config, book, each.folder / place, place, each.seed)
            )
        yield holders, successors


def ledger_name(party: SimulatedParty) -> str:
    """File of a party's ledger in a run folder."""
    return "ledger.sqlite" if party is ONE else f"ledger-{party.name}.sqlite"


def _refuse_shared_ledgers(parties: Sequence[SimulatedParty]) -> None:
    ledgers = [party.ledger.resolve() for party in parties if party.ledger is not None]
    if len(set(ledgers)) < len(ledgers):
        raise InputError(
            "[[data_party]], ledger: expected each party with a ledger of its own, got one for two "
            "of them"
        )
