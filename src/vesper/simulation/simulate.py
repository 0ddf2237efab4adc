"""Simulation of a run: party folders in, a run folder out, all parties in this process.

Noise comes from the seed, so that a run can be repeated bit for bit. What it releases is therefore
not private, and the result states this. Each data party has its own folder, ledger, noise and door.
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
from vesper.privacy.ledger.reservation import open_runs, return_unused
from vesper.privacy.ledger.run_balance import balance_of_run
from vesper.privacy.ledger.store import Ledger
from vesper.progress import Progress, no_progress
from vesper.session.data_parties import ONLY_DATA_PARTY, SimulatedParty, config_for, is_only_party
from vesper.session.doors import open_door
from vesper.session.evaluation_file import write_evaluation
from vesper.session.journal import open_journal
from vesper.session.label_responses import simulate_label_responses
from vesper.session.observer import ProgressObserver
from vesper.session.result import (
    PartyFacts,
    Result,
    new_run_name,
    peak_memory,
    privacy_facts_of,
    refuse_used_folder,
    write_run,
)
from vesper.session.run_spec import (
    RunSpec,
    least_private,
    refuse_equal_labels,
    refuse_other_stages,
    run_spec_for,
)
from vesper.simulation.in_process import InProcessDataParty, train_all_parties
from vesper.simulation.snapshot_run import SnapshotOpener, evaluate_snapshots, open_snapshots
from vesper.simulation.stage0_cache import Stage0Cache

PARTY_SEED_OFFSET = 1 << 80
"""Added to the seed for each further party: no two share the bits of their noise."""


@dataclass(frozen=True)
class PreparedParty:
    """A data party before its door is open."""

    settings: SimulatedParty
    config: Config
    data: DataHoldings
    run_spec: RunSpec
    folder: Path
    """Folder of the simulation, which holds the folder of this party."""
    seed: int
    """Seed of its noise; no two parties share one."""

    def facts(self, data_party: InProcessDataParty) -> PartyFacts:
        """State its guarantee with the noise that was drawn, and what it has spent."""
        door = data_party.door
        privacy = privacy_facts_of(
            data_party.run_spec.noise_plan, label_epsilon=self.config.privacy.label_epsilon
        )
        return PartyFacts(
            self.settings.name,
            own=self.settings.own,
            privacy=privacy,
            spent_epsilon=balance_of_run(door.account.ledger, door.run).spent_epsilon
            if isinstance(door, ChargedDoor)
            else None,
        )


def prepare_parties(
    parties: Sequence[SimulatedParty],
    folder: Path,
    config: Config,
    labels: LabelHoldings,
    *,
    progress: Progress = no_progress,
) -> list[PreparedParty]:
    """Open all folders and make the run spec of each party, before any file is written.

    Raises:
        InputError: a folder cannot be used, or the parties do not fit together.
    """
    _refuse_shared_ledgers(parties)
    opened = []
    for number, party in enumerate(parties):
        own = config_for(config, party)
        data = open_data(folder / party.subfolder, progress=progress)
        refuse_unknown_labels(data.ids, labels)
        run_spec = run_spec_for(own, data, labels)
        seed = config.run.seed + number * PARTY_SEED_OFFSET
        opened.append(PreparedParty(party, own, data, run_spec, folder, seed))
    schedules = [each.run_spec.schedule for each in opened]
    refuse_other_stages([party.name for party in parties], schedules)
    if schedules[0].num_test == 0:
        raise InputError(
            f"{labels.path}, column split: expected some rows with 'test', found none; a model is "
            f"measured on nodes that did not help to choose it"
        )
    return opened


@contextmanager
def open_doors(
    opened: Sequence[PreparedParty],
    out: Path,
    *,
    run: str,
    ledger: Path | None,
) -> Iterator[tuple[list[InProcessDataParty], list[SnapshotOpener]]]:
    """Open a ledger and a door for each party, and an opener for snapshots on the same ledger.

    Args:
        opened: the data parties.
        out: folder of the run; new ledgers are created there.
        run: the name of the run in ledgers.
        ledger: path of the only party's ledger, if it is not in the run folder; several parties
            name theirs in their settings.

    Raises:
        BudgetError: what a party will release costs more than is left of its budget.
    """
    with ExitStack() as stack:
        data_parties, snapshot_openers = [], []
        for each in opened:
            path = ledger or each.settings.ledger or out / ledger_file_name(each.settings)
            book = stack.enter_context(closing(Ledger(path, clock=time.time)))
            noise = NoiseSource.for_simulation(each.seed)
            stack.callback(_return_all, book, run)
            door, run_spec = open_door(
                each.run_spec, each.data.graph, book, noise, name=each.settings.graph, run=run
            )
            data_party = InProcessDataParty(run_spec, each.data, door, each.settings.name)
            data_parties.append(data_party)
            subfolder = each.settings.subfolder
            snapshot_openers.append(
                SnapshotOpener(
                    data_party,
                    each.config,
                    book,
                    each.folder / subfolder,
                    subfolder,
                    each.seed,
                    each.settings.graph,
                )
            )
        yield data_parties, snapshot_openers


def _return_all(ledger: Ledger, run: str) -> None:
    """Return what a run and its snapshots have left; a simulation does not resume."""
    for name in open_runs(ledger):
        if name == run or name.startswith(f"{run} "):
            return_unused(ledger, run=name)


def ledger_file_name(party: SimulatedParty) -> str:
    """Name of the file of a party's ledger in a run folder."""
    return "ledger.sqlite" if is_only_party(party) else f"ledger-{party.name}.sqlite"


def _refuse_shared_ledgers(parties: Sequence[SimulatedParty]) -> None:
    ledgers = [party.ledger.resolve() for party in parties if party.ledger is not None]
    if len(set(ledgers)) < len(ledgers):
        raise InputError(
            "[[data_party]], ledger: expected a separate ledger for each party, got one ledger for "
            "two of them"
        )


def simulate(
    folder: Path | str,
    config: Config,
    out: Path | str,
    *,
    ledger: Path | None = None,
    snapshots: Sequence[Path] = (),
    parties: tuple[SimulatedParty, ...] = (ONLY_DATA_PARTY,),
    stage0_cache: Stage0Cache | None = None,
    progress: Progress = no_progress,
) -> Result:
    """Train one method on party folders and write a run folder.

    Args:
        folder: holds `data/` and `label/`.
        config: checked settings.
        out: a new or empty folder.
        ledger: the only data party's ledger; by default a new one in the run folder, because
            simulated noise spends nothing.
        snapshots: folders like `folder` with later graphs; the trained model predicts their test
            nodes, each graph with its own budget.
        parties: the data parties, if there are several; `folder` holds a folder of each.
        stage0_cache: stage 0 of earlier runs that share it; for one data party.
        progress: receives progress reports.

    Raises:
        InputError: settings or folders cannot be used.
        BudgetError: the releases of a data party do not fit its budget.
    """
    started = time.perf_counter()
    folder, out = Path(folder), Path(out)
    refuse_used_folder(out)
    if ledger is not None and (len(parties) > 1 or parties[0].ledger is not None):
        raise InputError(
            "--ledger: expected one data party without its own ledger; name the ledger in the "
            "table of each [[data_party]] instead"
        )
    run = new_run_name("simulation")
    labels = open_labels(folder / "label", decimals=config.run.task != "classification")
    opened = prepare_parties(parties, folder, config, labels, progress=progress)
    refuse_equal_labels(config, labels, "test")
    with new_folder(out) as new:  # complete, or removed
        with (
            open_journal(
                new,
                side="both",
                config=config,
                ledger=ledger,
                observer=ProgressObserver(progress),
            ) as journal,
            open_doors(opened, new, run=run, ledger=ledger) as (
                data_parties,
                snapshot_openers,
            ),
        ):
            journal.write("charging", run=run)
            opened_snapshots = open_snapshots(
                snapshots,
                snapshot_openers,
                config,
                run=run,
                classes=labels.classes,
                progress=progress,
            )
            responses = simulate_label_responses(config, labels, path=new / "label-ledger.sqlite")
            trained = train_all_parties(
                data_parties,
                labels,
                observer=journal,
                responses=responses,
                stage0_entry=stage0_cache.entry_for(folder, data_parties[0].run_spec)
                if stage0_cache
                else None,
            )
            facts = [
                each.facts(data_party)
                for each, data_party in zip(opened, data_parties, strict=True)
            ]
            snapshot_results = evaluate_snapshots(
                opened_snapshots, trained, config, labels, responses
            )
        best = trained.best_stage
        weakest = least_private([each.run_spec.noise_plan for each in opened])
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
            privacy=facts[[each.run_spec.noise_plan for each in opened].index(weakest)].privacy,
            run=run,
            snapshots=snapshot_results,
            parties=tuple(facts) if not is_only_party(parties[0]) else (),
            data=folder.absolute().name,
        )
        modules = {
            data_model_name(each.settings): side.module
            for each, side in zip(opened, trained.data_sides, strict=True)
        }
        write_run(new, config, result, **modules, label_party=trained.label_side.module)
        write_evaluation(new, config, labels, trained.validation_scores)
    return result


def data_model_name(party: SimulatedParty) -> str:
    """Name of the file of a party's model in a run folder, without its suffix."""
    return "data_party" if is_only_party(party) else f"data_party-{party.name}"
