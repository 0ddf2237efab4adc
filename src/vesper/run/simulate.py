"""Both parties in one process: the same session, parties and protocol, over a memory channel.

Noise comes from the seed, so that a run can be repeated bit for bit; hence what it releases is not
private, and the result says so.
"""

import resource
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError, PeerError
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import SPLITS, LabelHoldings, open_labels
from vesper.graph.summary import refuse_unknown_labels
from vesper.mechanism.door import ChargedDoor, Door, OpenDoor
from vesper.mechanism.noise import NoiseSource
from vesper.method.budgeting import budget_of
from vesper.method.method import Method, Sizes
from vesper.method.registry import find_method
from vesper.method.settings import Config
from vesper.model.decoder import Decoder
from vesper.model.objective import Classification, Objective
from vesper.party.data_party import DataParty
from vesper.party.label_party import LabelParty
from vesper.party.representation import Representation
from vesper.privacy.ledger import Ledger
from vesper.progress import Progress, silent
from vesper.protocol.messages import Hello, Roster
from vesper.protocol.turns import Role
from vesper.run.link import Link
from vesper.run.result import Result, facts_of, refuse_used, write_run
from vesper.run.session import Itinerary, answer, drive
from vesper.transport.memory import memory_pair

PROTOCOL_VERSION = 1


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
    method = find_method(config.run.method)
    data, labels = open_data(folder / "data", progress=progress), open_labels(folder / "label")
    refuse_unknown_labels(data.ids, labels)
    for split in SPLITS:
        if len(labels.rows(split)) == 0:
            raise InputError(
                f"{folder / 'label'}: expected labels with split '{split}', found none"
            )
    sizes = Sizes(
        num_nodes=data.graph.num_nodes,
        num_train=len(labels.rows("train")),
        num_features=data.features.shape[1],
        num_classes=len(labels.classes),
    )
    promise = method.promise(config, sizes)
    out.mkdir(parents=True, exist_ok=True)
    with closing(Ledger(ledger or out / "ledger.sqlite", clock=time.time)) as book:
        door = _door(config, data, book, sizes, plan=promise.plan)
        sides = Sides(
            method.data_side(config, sizes, features=data.features, door=door),
            method.label_side(config, sizes),
        )
        run = _run(config, method, sizes, sides, data, labels, progress)
    best = int(np.argmax([stage["validation"] for stage in run.stages]))
    result = Result(
        method=config.run.method,
        metric=run.metric,
        validation=run.stages[best]["validation"],
        test=run.stages[best]["test"],
        chosen_stage=best,
        stages=run.stages,
        seconds=time.perf_counter() - started,
        peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        bytes_to_label_party=run.bytes_to_label_party,
        bytes_to_data_party=run.bytes_to_data_party,
        privacy=facts_of(promise),
    )
    write_run(out, config, result, data_side=sides.data.module, label_side=sides.label.module)
    return result


@dataclass(frozen=True)
class Sides:
    """What the method made for each party."""

    data: Representation
    label: Decoder


@dataclass(frozen=True)
class Finished:
    """What came out of the session."""

    metric: str
    stages: list[dict[str, float]]
    bytes_to_label_party: int
    bytes_to_data_party: int


def _door(config: Config, data: DataHoldings, ledger: Ledger, sizes: Sizes, *, plan: str) -> Door:
    """Open the account of this graph where something is certified."""
    budget = budget_of(config.privacy, sizes)
    if plan != "certified" or budget is None:
        return OpenDoor(data.graph)
    noise = NoiseSource.for_simulation(config.run.seed)
    return ChargedDoor(
        data.graph, ledger=ledger, budget=budget, noise=noise, run=config.contract[:12]
    )


def _run(
    config: Config,
    method: Method,
    sizes: Sizes,
    sides: Sides,
    data: DataHoldings,
    labels: LabelHoldings,
    progress: Progress,
) -> Finished:
    """Meet, then drive and answer in two threads."""
    order = np.concatenate([labels.rows(split) for split in SPLITS])
    objective: Objective = Classification(labels.labels[order], sizes.num_classes)
    itinerary = Itinerary(
        stages=method.stages(config, sizes),
        num_train=sizes.num_train,
        num_val=len(labels.rows("val")),
        num_test=len(labels.rows("test")),
        batch_size=config.run.batch_size or default_batch_size(sizes.num_train),
        epochs=config.run.epochs,
        seed=config.run.seed,
    )
    rates = {"learning_rate": config.run.learning_rate, "weight_decay": config.run.weight_decay}
    data_party = DataParty(sides.data, **rates)
    label_party = LabelParty(objective, sides.label, patience=config.run.patience, **rates)
    data_end, label_end = memory_pair()
    data_link, label_link = Link(Role.DATA, data_end), Link(Role.LABEL, label_end)
    hello = Hello(version=PROTOCOL_VERSION, contract=config.contract)

    def label_side() -> list[NDArray[np.float64]]:
        try:
            label_link.expect(Hello)
            label_link.send(hello)
            train, val, test = (
                tuple(map(str, labels.ids.take(labels.rows(split)))) for split in SPLITS
            )
            speaking = np.arange(sizes.num_train if config.run.label_messages else 0)
            voices = objective.voices(speaking)
            label_link.send(Roster(train=train, val=val, test=test, voices=voices))
            return answer(label_party, label_link, itinerary)
        finally:
            label_end.close()

    with ThreadPoolExecutor(max_workers=1) as pool:
        answering = pool.submit(label_side)
        try:
            data_link.send(hello)
            data_link.expect(Hello)
            roster = data_link.expect(Roster)
            nodes = data.ids.find_texts(roster.train + roster.val + roster.test)
            data_party.meet(nodes, roster.voices)
            drive(data_party, data_link, itinerary, progress=progress)
        except PeerError:
            data_end.close()
            answering.result()  # the cause, when the label side failed first
            raise
        finally:
            data_end.close()
        scores = answering.result()
    splits = {"validation": itinerary.validation(), "test": itinerary.test()}
    return Finished(
        metric=objective.metric,
        stages=[
            {
                split: objective.evaluate(held_out[rows - itinerary.num_train], rows)
                for split, rows in splits.items()
            }
            for held_out in scores
        ],
        bytes_to_label_party=data_link.bytes_sent,
        bytes_to_data_party=label_link.bytes_sent,
    )


def default_batch_size(num_train: int) -> int:
    """An eighth of the training nodes, within 256 and 1024.

    >>> default_batch_size(1_000), default_batch_size(4_000), default_batch_size(10**6)
    (256, 500, 1024)
    """
    return min(max(num_train // 8, 256), 1024)
