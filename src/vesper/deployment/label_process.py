"""The label party of a run over the network; its state folder is as that of the data party.

With several data parties, what belongs to one pair lies in `state/with/<name>`.

What a run with several data parties leaves behind for each pair, so that each can be asked.

    result/with/<name>/  contract.json   result/ config, result, label_party.npz, asking.json

The joined decoder is a sum over parties, so the part of one party is a decoder of its own. A party
that has left cannot be asked; nothing of it is kept.
"""

import time
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

from vesper.datasets.folders import new_folder
from vesper.deployment.alignment.aligned_file import only_aligned, read_aligned
from vesper.deployment.config.multi_party_config import LabelTable, table_of
from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.connect import Lost, party_journal
from vesper.deployment.data_peers import own_states, seated_channel, seats_of
from vesper.deployment.own_graph import own_graph
from vesper.deployment.saved_run import keep_for_questions
from vesper.deployment.state_folder import (
    hold_to_labels,
    hold_to_ledger,
    hold_to_parties,
    refuse_lost_ledger,
)
from vesper.graph.labels import LabelHoldings, open_labels
from vesper.mechanism.noise import NoiseSource
from vesper.model.decoders import JoinedDecoder
from vesper.model.evaluation import Calibration
from vesper.model.objective_factory import Responses
from vesper.privacy.ledger.store import Ledger
from vesper.progress import Progress, silent
from vesper.session.checkpoint import FileCheckpoints
from vesper.session.contract import approve
from vesper.session.label_responses import responses_of
from vesper.session.label_side import LabelOutcome, label_end, objective_of
from vesper.session.result import LabelResult, PartyFacts, facts_of, peak_memory, write_run
from vesper.session.run_spec import least_private


def keep_pairs(
    out: Path,
    table: LabelTable,
    outcome: LabelOutcome,
    result: LabelResult,
    calibration: Calibration,
) -> None:
    """Write the part of each party that is still there."""
    decoder = outcome.label_side
    modules = list(decoder.members) if isinstance(decoder, JoinedDecoder) else [decoder.module]
    for number, (pair, facts) in enumerate(zip(table.pairs, result.parties, strict=True)):
        if facts.left:
            continue
        assert facts.session is not None
        folder = out / "with" / facts.name
        (folder / "result").mkdir(parents=True)
        approve(folder, pair.shared)
        own = replace(result, session=facts.session, privacy=facts.privacy, parties=())
        write_run(folder / "result", pair.shared, own, label_party=modules[number])
        sizes = outcome.agreements[number].sizes
        keep_for_questions(folder / "result", sizes, calibration)


def there_still(table: LabelTable) -> list[PartyConfig]:
    """Data parties of a finished run elsewhere that have not left it."""
    if not table.parties:
        return list(table.pairs)
    own = [party.name for party in table.parties if party.own]
    return [pair for pair, _ in kept_pairs(table) if pair.party.peer not in own]


def kept_pairs(table: LabelTable) -> list[tuple[PartyConfig, PartyConfig]]:
    """Settings of each pair that can be asked: to meet by, and to read what was kept by."""
    kept = table.own.party.state / "result" / "with"
    found = []
    for pair in table.pairs:
        folder = kept / pair.party.peer
        if folder.is_dir():
            there = pair.party.model_copy(update={"state": folder})
            found.append((pair, pair.model_copy(update={"party": there})))
    return found


DRAWN_THERE = "drawn by the data party"


def run_label_party(
    config: PartyConfig,
    *,
    resume: bool = False,
    noise: NoiseSource | None = None,
    progress: Progress = silent,
    lost: Lost = lambda why: None,
) -> LabelResult:
    """Fulfil the contract with one data party; arguments and errors as of the data party.

    Where labels are protected, responses to them come from `noise`.
    """
    return run_label_table(
        table_of(config), resume=resume, noise=noise, progress=progress, lost=lost
    )


def run_label_table(
    table: LabelTable,
    *,
    resume: bool = False,
    noise: NoiseSource | None = None,
    progress: Progress = silent,
    lost: Lost = lambda why: None,
) -> LabelResult:
    """Fulfil the contracts with all data parties at once; the own graph's noise is from `noise`."""
    started, config, own = time.perf_counter(), table.own, table.own.party
    noise = noise or NoiseSource.from_os()
    decimals = config.shared.run.task != "classification"
    with (
        own_states(table, resume=resume) as state,
        party_journal(config, resume=resume, source=DRAWN_THERE, progress=progress) as told,
        ExitStack() as stack,
    ):
        hold_to_parties(state, [party.name for party in table.parties], resume=resume)
        labels = open_labels(own.folder, decimals=decimals)
        for pair in table.pairs:
            aligned = read_aligned(pair.party.state)
            if aligned is not None:
                labels = only_aligned(labels, aligned)
        responses = _responses(config, labels, noise, resume=resume, said=lost)
        graph = None
        if table.graph is not None:
            has_met = (table.pair_with_own.party.state / "session").exists()
            graph = stack.enter_context(own_graph(table.graph, resume=has_met, noise=noise))
        channels = [
            stack.enter_context(seated_channel(table, k, graph, told.progress, lost))
            for k in range(len(table.pairs))
        ]
        outcome = label_end(
            seats_of(table, channels),
            labels,
            checkpoints=FileCheckpoints(state / "checkpoint.npz", *channels),
            progress=told.progress,
            told=told,
            responses=responses,
            lost=lost,
        )
        result = _label_result(
            table, outcome, [each.session for each in channels], time.perf_counter() - started
        )
        with new_folder(state / "result") as out:  # whatever the peers do from here on
            write_run(out, config.shared, result, label_party=outcome.label_side.module)
            calibration = objective_of(config.shared, labels).calibration(labels.classes)
            if table.parties:
                keep_pairs(out, table, outcome, result, calibration)
            else:
                keep_for_questions(out, outcome.agreement.sizes, calibration)
        for pair, channel in zip(table.pairs, channels, strict=True):
            if pair.party.peer not in outcome.gone:
                channel.finish(patience=pair.party.patience)
                channel.linger()
    return result


def _responses(
    config: PartyConfig, labels: LabelHoldings, noise: NoiseSource, *, resume: bool, said: Lost
) -> Responses | None:
    """Responses to labels where they are protected; those that the run began with."""

    def stale(count: int) -> None:
        said(
            f"{count} labels have changed since they were first answered about under {own.ledger}; "
            f"those first answers stand, so that nobody learns that they changed. To train on "
            f"today's, use a ledger of their own, and count both epsilons"
        )

    own = config.party
    if config.shared.privacy.label_epsilon is None:
        return None
    assert own.ledger is not None, "the settings were checked for it"
    refuse_lost_ledger(own.state, own.ledger, resume=resume)
    with closing(Ledger(own.ledger, clock=time.time)) as ledger:
        hold_to_ledger(own.state, ledger, resume=resume)
        return responses_of(
            config.shared,
            labels,
            ledger=ledger,
            noise=noise,
            named=lambda table: hold_to_labels(own.state, table, resume=resume),
            stale=stale,
        )


def _label_result(
    table: LabelTable, outcome: LabelOutcome, sessions: list[str], seconds: float
) -> LabelResult:
    promises = [each.noise_plan for each in outcome.agreements]
    label_epsilon = table.own.shared.privacy.label_epsilon
    best = outcome.best_stage
    return LabelResult(
        method=table.own.shared.run.method,
        metric=outcome.metric,
        validation=outcome.stages[best]["validation"],
        test=outcome.stages[best].get("test"),
        chosen_stage=best,
        stages=outcome.stages,
        seconds=seconds,
        peak_memory_bytes=peak_memory(),
        bytes_sent=outcome.bytes_sent,
        session=sessions[0],
        privacy=facts_of(least_private(promises), source=DRAWN_THERE, label_epsilon=label_epsilon),
        parties=tuple(
            PartyFacts(
                party.name,
                own=party.own,
                privacy=facts_of(promise, source=DRAWN_THERE, label_epsilon=label_epsilon),
                session=session,
                left=party.name in outcome.gone,
            )
            for party, promise, session in zip(table.parties, promises, sessions, strict=False)
        ),
    )
