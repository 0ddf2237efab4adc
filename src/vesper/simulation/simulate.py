"""Party folders in, a run folder out, all parties in this process.

Noise comes from the seed, so that a run can be repeated bit for bit; hence what it releases is not
private, and the result says so.

The data parties of a simulation: each with its folder, ledger, noise and door.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from vesper.datasets.folders import new_folder
from vesper.errors import InputError
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import LabelHoldings, open_labels
from vesper.graph.summary import refuse_unknown_labels
from vesper.mechanism.door import ChargedDoor
from vesper.mechanism.noise import NoiseSource
from vesper.method.settings import Config
from vesper.privacy.ledger.store import Ledger
from vesper.progress import Progress, silent
from vesper.session.data_parties import ONE, SimulatedParty, config_for
from vesper.session.doors import open_door
from vesper.session.journal import journal_of
from vesper.session.label_responses import simulated_responses
from vesper.session.result import (
    PartyFacts,
    Result,
    facts_of,
    peak_memory,
    refuse_used,
    simulated_name,
    write_run,
)
from vesper.session.run_spec import (
    Agreement,
    agree,
    least_private,
    refuse_equal_labels,
    refuse_other_stages,
)
from vesper.simulation.in_process import Holder, train_together
from vesper.simulation.snapshot_run import Successors, judge_later_graphs, open_later_graphs
from vesper.simulation.stage0_cache import Begun

STREAM = 1 << 80
"""Added to the seed for each further party: no two share the bits of their noise."""


@dataclass(frozen=True)
class Simulated:
    """A data party before its door is open."""

    settings: SimulatedParty
    config: Config
    data: DataHoldings
    agreement: Agreement
    folder: Path
    """Of the simulation; with a folder of this party in it."""
    seed: int
    """Of its noise; no two parties have the same."""

    def facts(self, holder: Holder) -> PartyFacts:
        """What it was promised, with the noise that was drawn, and what it has spent."""
        door = holder.door
        privacy = facts_of(
            holder.agreement.noise_plan, label_epsilon=self.config.privacy.label_epsilon
        )
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
        seed = config.run.seed + number * STREAM
        opened.append(Simulated(party, own, data, agreement, folder, seed))
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


def simulate(
    folder: Path | str,
    config: Config,
    out: Path | str,
    *,
    ledger: Path | None = None,
    snapshots: Sequence[Path] = (),
    parties: tuple[SimulatedParty, ...] = (ONE,),
    begun: Begun | None = None,
    progress: Progress = silent,
) -> Result:
    """Train one method on party folders and write a run folder.

    Args:
        folder: holds `data/` and `label/`.
        config: checked settings.
        out: a new or empty folder.
        ledger: the only data party's ledger; by default a fresh one in the run folder, for
            simulated noise spends nothing.
        snapshots: folders like `folder` with graphs that came later; the trained model predicts
            their test nodes, each graph with a budget of its own.
        parties: the data parties, where there are several; `folder` holds a folder of each.
        begun: where runs that begin like this one may have begun; for one data party.
        progress: is told how far the run is.
    """
    started = time.perf_counter()
    folder, out = Path(folder), Path(out)
    refuse_used(out)
    if ledger is not None and (len(parties) > 1 or parties[0].ledger is not None):
        raise InputError(
            "--ledger: expected one data party without a ledger of its own; name it in the table "
            "of each [[data_party]] instead"
        )
    labels = open_labels(folder / "label", decimals=config.run.task != "classification")
    opened = open_parties(parties, folder, config, labels, progress=progress)
    refuse_equal_labels(config, labels, "test")
    with new_folder(out) as new:  # whole in the end, or not there
        with (
            journal_of(new, side="both", config=config, ledger=ledger, progress=progress) as told,
            doors_of(opened, new, run=simulated_name(config), ledger=ledger) as (
                holders,
                successors,
            ),
        ):
            later = open_later_graphs(
                snapshots,
                successors,
                config,
                classes=labels.classes,
                progress=progress,
            )
            responses = simulated_responses(config, labels, path=new / "label-ledger.sqlite")
            trained = train_together(
                holders,
                labels,
                progress=told.progress,
                told=told,
                responses=responses,
                beginning=begun.of(folder, holders[0].agreement) if begun else None,
            )
            facts = [each.facts(holder) for each, holder in zip(opened, holders, strict=True)]
            judged = judge_later_graphs(later, trained, config, labels, responses)
        best = trained.best_stage
        weakest = least_private([each.agreement.noise_plan for each in opened])
        result = Result(
            method=config.run.method,
            metric=trained.metric,
            validation=trained.stages[best]["validation"],
            test=trained.stages[best]["test"],
            chosen_stage=best,
            stages=trained.stages,
            seconds=time.perf_counter() - started,
            peak_memory_bytes=peak_memory(),
            bytes_to_label_party=trained.bytes_to_label_party,
            bytes_to_data_party=trained.bytes_to_data_party,
            privacy=facts[[each.agreement.noise_plan for each in opened].index(weakest)].privacy,
            snapshots=judged,
            parties=tuple(facts) if parties != (ONE,) else (),
        )
        modules = {
            model_name(each.settings): side.module
            for each, side in zip(opened, trained.data_sides, strict=True)
        }
        write_run(new, config, result, **modules, label_party=trained.label_side.module)
    return result


def model_name(party: SimulatedParty) -> str:
    """File of a party's model in a run folder, without its ending."""
    return "data_party" if party is ONE else f"data_party-{party.name}"
