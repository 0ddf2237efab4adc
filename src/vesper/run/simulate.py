"""Party folders in, a run folder out, all parties in this process.

Noise comes from the seed, so that a run can be repeated bit for bit; hence what it releases is not
private, and the result says so.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from vesper.datasets.folders import new_folder
from vesper.errors import InputError
from vesper.graph.labels import open_labels
from vesper.method.settings import Config
from vesper.progress import Progress, silent
from vesper.run.agreement import least_private
from vesper.run.begun import Begun
from vesper.run.journal import journal_of
from vesper.run.label_responses import simulated_responses
from vesper.run.later_graph import judge_later_graphs, open_later_graphs
from vesper.run.pair import train_together
from vesper.run.result import Result, peak_memory, refuse_used, simulated_name, write_run
from vesper.run.setup.data_parties import ONE, SimulatedParty
from vesper.run.simulated_parties import doors_of, open_parties
from vesper.run.usable_labels import refuse_equal_labels


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
        weakest = least_private([each.promise for each in opened])
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
            privacy=facts[[each.promise for each in opened].index(weakest)].privacy,
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
