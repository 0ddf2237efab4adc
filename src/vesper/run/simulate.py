"""Both parties in one process: the same session, parties and protocol, over a memory channel.

Noise comes from the seed, so that a run can be repeated bit for bit; hence what it releases is not
private, and the result says so.
"""

import json
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from vesper.errors import InputError, PeerError
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import SPLITS, LabelHoldings, open_labels
from vesper.graph.summary import refuse_unknown_labels
from vesper.mechanism.fingerprint import fingerprint
from vesper.mechanism.noise import NoiseSource
from vesper.method.blueprint import Blueprint, Shape
from vesper.method.registry import find_method
from vesper.model.metric import evaluate, metric_name
from vesper.party.data_party import DataParty, Spending
from vesper.party.label_party import LabelParty
from vesper.privacy.account import open_account
from vesper.privacy.budget import Budget
from vesper.privacy.events import GaussianRelease
from vesper.privacy.key import key_of
from vesper.privacy.ledger import Ledger
from vesper.privacy.participation import noise_std_for
from vesper.progress import Progress, silent
from vesper.protocol.messages import Hello, Roster
from vesper.protocol.turns import Role
from vesper.run.config import Config, public_delta
from vesper.run.link import Link
from vesper.run.session import Itinerary, answer, drive
from vesper.transport.memory import memory_pair

PROTOCOL_VERSION = 1


@dataclass(frozen=True)
class PrivacyFacts:
    """What a run guarantees, if its noise had come from the operating system."""

    plan: str
    certified_epsilon: float | None
    claimed_epsilon: float | None
    delta: float | None
    noise_std: float | None
    releases: int
    noise: str


@dataclass(frozen=True)
class Result:
    """What `vesper simulate` prints."""

    method: str
    metric: str
    validation: float
    test: float
    chosen_stage: int
    seconds: float
    peak_memory_bytes: int
    bytes_to_label_party: int
    bytes_to_data_party: int
    privacy: PrivacyFacts


def simulate(folder: Path, config: Config, out: Path, *, progress: Progress = silent) -> Result:
    """Train one method on party folders and write a run folder."""
    started = time.perf_counter()
    if out.exists() and any(out.iterdir()):
        raise InputError(f"{out}: expected a new or empty folder; name another with --out")
    method = find_method(config.run.method)
    data, labels = open_data(folder / "data", progress=progress), open_labels(folder / "label")
    refuse_unknown_labels(data.ids, labels)
    for split in SPLITS:
        if len(labels.rows(split)) == 0:
            raise InputError(
                f"{folder / 'label'}: expected labels with split '{split}', found none"
            )
    hops = method.hops(config.privacy.hops)
    blueprint = method.build(
        Shape(
            num_features=data.features.shape[1],
            num_classes=len(labels.classes),
            width=config.run.width,
            hops=hops,
            degree_share=config.run.degree_share,
            dropout=config.run.dropout,
            seed=config.run.seed,
        )
    )
    out.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(out / "ledger.sqlite", clock=time.time)
    spending, facts = _spending(config, data, ledger, hops=hops, plan=method.plan)
    scores, labelled, sent = _run(config, blueprint, data, labels, spending, hops, progress)
    ledger.close()

    _, truth, splits = labelled
    held_out = splits > 0
    by_stage = [
        [evaluate(s[splits[held_out] == k], truth[splits == k]) for k in (1, 2)] for s in scores
    ]
    chosen = int(np.argmax([validation for validation, _ in by_stage]))
    result = Result(
        method=config.run.method,
        metric=metric_name(len(labels.classes)),
        validation=by_stage[chosen][0],
        test=by_stage[chosen][1],
        chosen_stage=chosen,
        seconds=time.perf_counter() - started,
        peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        bytes_to_label_party=sent[0],
        bytes_to_data_party=sent[1],
        privacy=facts,
    )
    _write(out, config, result, blueprint, by_stage)
    return result


def _spending(
    config: Config, data: DataHoldings, ledger: Ledger, *, hops: int, plan: str
) -> tuple[Spending | None, PrivacyFacts]:
    """Open the account of this graph and fix the noise of its releases."""
    if hops == 0:
        return None, PrivacyFacts(plan, 0.0, None, None, None, 0, "none needed: no edge is read")
    delta = config.privacy.delta or public_delta(data.graph.num_nodes)
    budget = Budget(epsilon=config.privacy.epsilon, delta=delta)
    event = GaussianRelease(noise_std=noise_std_for(budget=budget, releases=hops))
    name = fingerprint(data.graph, key=key_of(ledger))
    account = open_account(ledger, name, num_nodes=data.graph.num_nodes, budget=budget)
    noise = NoiseSource.for_simulation(config.run.seed)
    facts = PrivacyFacts(
        plan=plan,
        certified_epsilon=budget.epsilon,
        claimed_epsilon=None,
        delta=delta,
        noise_std=event.noise_std,
        releases=hops,
        noise="simulated from the seed: not private",
    )
    return Spending(account, event, noise, run=config.contract[:12]), facts


def _run(
    config: Config,
    blueprint: Blueprint,
    data: DataHoldings,
    labels: LabelHoldings,
    spending: Spending | None,
    hops: int,
    progress: Progress,
) -> tuple[list[NDArray[np.float64]], tuple[Any, ...], tuple[int, int]]:
    """Meet, then drive and answer in two threads."""
    order = np.concatenate([labels.rows(split) for split in SPLITS])
    truth, splits = labels.labels[order], labels.splits[order]
    itinerary = Itinerary(
        stages=hops + 1,
        num_train=int((splits == 0).sum()),
        num_val=int((splits == 1).sum()),
        num_test=int((splits == 2).sum()),
        batch_size=config.run.batch_size,
        epochs=config.run.epochs,
        seed=config.run.seed,
    )
    data_party = DataParty(
        data.graph,
        data.features,
        blueprint.extractor,
        spending=spending,
        learning_rate=config.run.learning_rate,
        weight_decay=config.run.weight_decay,
    )
    label_party = LabelParty(
        truth,
        blueprint.decoder,
        learning_rate=config.run.learning_rate,
        patience=config.run.patience,
    )
    data_end, label_end = memory_pair()
    data_link, label_link = Link(Role.DATA, data_end), Link(Role.LABEL, label_end)

    def label_side() -> list[NDArray[np.float64]]:
        try:
            label_link.expect(Hello)
            label_link.send(Hello(version=PROTOCOL_VERSION, contract=config.contract))
            texts = [tuple(map(str, labels.ids.take(labels.rows(split)))) for split in SPLITS]
            label_link.send(Roster(*texts))
            return answer(label_party, label_link, itinerary)
        finally:
            label_end.close()

    with ThreadPoolExecutor(max_workers=1) as pool:
        answering = pool.submit(label_side)
        try:
            data_link.send(Hello(version=PROTOCOL_VERSION, contract=config.contract))
            data_link.expect(Hello)
            roster = data_link.expect(Roster)
            data_party.meet(data.ids.find_texts(roster.train + roster.val + roster.test))
            drive(data_party, data_link, itinerary, progress=progress)
        except PeerError:
            data_end.close()
            answering.result()  # the cause, when the label side failed first
            raise
        finally:
            data_end.close()
        scores = answering.result()
    return scores, (order, truth, splits), (data_link.bytes_sent, label_link.bytes_sent)


def _write(
    out: Path, config: Config, result: Result, blueprint: Blueprint, by_stage: list[list[float]]
) -> None:
    """Write the run folder: config, result, the model of each party."""
    (out / "config.json").write_text(config.model_dump_json(indent=2))
    facts = {**asdict(result), "stages": by_stage}
    (out / "result.json").write_text(json.dumps(facts, indent=2))
    _save(out / "data_party.npz", blueprint.extractor)
    _save(out / "label_party.npz", blueprint.decoder)


def _save(path: Path, module: nn.Module) -> None:
    np.savez(path, **{name: value.numpy() for name, value in module.state_dict().items()})
