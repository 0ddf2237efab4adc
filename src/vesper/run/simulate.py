"""Party folders in, a run folder out, both parties in this process.

Noise comes from the seed, so that a run can be repeated bit for bit; hence what it releases is not
private, and the result says so.
"""

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from vesper.datasets.folders import new_folder
from vesper.errors import InputError
from vesper.graph.holdings import open_data
from vesper.graph.labels import open_labels
from vesper.graph.summary import refuse_unknown_labels
from vesper.mechanism.noise import NoiseSource
from vesper.method.settings import Config
from vesper.privacy.ledger import Ledger
from vesper.progress import Progress, silent
from vesper.run.agreement import agree, refuse_equal_labels
from vesper.run.doors import open_door
from vesper.run.journal import journal_of
from vesper.run.label_responses import simulated_responses
from vesper.run.pair import train
from vesper.run.result import Result, facts_of, peak_memory, refuse_used, simulated_name, write_run


def simulate(
    folder: Path,
    config: Config,
    out: Path,
    *,
    ledger: Path | None = None,
    progress: Progress = silent,
) -> Result:
    """Train one method on party folders and write a run folder.

    Args:
        folder: holds `data/` and `label/`.
        config: checked settings.
        out: a new or empty folder.
        ledger: the data party's ledger; by default a fresh one in the run folder, for simulated
            noise spends nothing.
        progress: is told how far the run is.
    """
    started = time.perf_counter()
    refuse_used(out)
    data = open_data(folder / "data", progress=progress)
    labels = open_labels(folder / "label", decimals=config.run.task != "classification")
    refuse_unknown_labels(data.ids, labels)
    agreement = agree(config, data, labels)
    if agreement.itinerary.num_test == 0:
        raise InputError(
            f"{labels.path}, column split: expected some rows with 'test', found none; a run says "
            f"how good it is on nodes that it was not chosen by"
        )
    refuse_equal_labels(config, labels, "test")
    promise = agreement.method.promise(config, agreement.sizes)  # refuses before a file is made
    with new_folder(out) as new:  # whole in the end, or not there
        charged = ledger or new / "ledger.sqlite"
        with (
            journal_of(new, side="both", config=config, ledger=ledger, progress=progress) as told,
            closing(Ledger(charged, clock=time.time)) as book,
        ):
            noise = NoiseSource.for_simulation(config.run.seed)
            run = simulated_name(config)
            door, agreement = open_door(agreement, data.graph, book, noise, run=run)
            trained = train(
                agreement,
                data,
                labels,
                door,
                progress=told.progress,
                told=told,
                responses=simulated_responses(config, labels, path=new / "label-ledger.sqlite"),
            )
        planned = agreement.method.promise(agreement.config, agreement.sizes)
        best = trained.best_stage
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
            privacy=facts_of(
                replace(planned, certified_epsilon=promise.certified_epsilon),
                label_epsilon=config.privacy.label_epsilon,
            ),
        )
        write_run(
            new,
            config,
            result,
            data_party=trained.data_side.module,
            label_party=trained.label_side.module,
        )
    return result
