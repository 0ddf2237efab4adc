"""The label party of a run over the network; its state folder is as that of the data party."""

import time
from contextlib import closing

from vesper.datasets.folders import new_folder
from vesper.graph.labels import LabelHoldings, open_labels
from vesper.mechanism.noise import NoiseSource
from vesper.model.objectives import Responses
from vesper.privacy.ledger import Ledger
from vesper.progress import Progress, silent
from vesper.protocol.turns import Role
from vesper.run.alignment.aligned_file import only_aligned, read_aligned
from vesper.run.ends.checkpoint import FileCheckpoints
from vesper.run.ends.label_end import LabelOutcome, label_end, objective_of
from vesper.run.ends.link import Link
from vesper.run.label_responses import responses_of
from vesper.run.network.begun_with import hold_to_labels, hold_to_ledger, refuse_lost_ledger
from vesper.run.network.meet import meeting_place, waiting_shown
from vesper.run.network.own_state import own_state
from vesper.run.network.party_channel import Lost, party_channel
from vesper.run.network.party_journal import party_journal
from vesper.run.result import (
    LabelResult,
    facts_of,
    peak_memory,
    write_run,
)
from vesper.run.serving.kept_run import keep_for_questions
from vesper.run.setup.party_config import PartyConfig
from vesper.transport.channel import closing_in_words

DRAWN_THERE = "drawn by the data party"


def run_label_party(
    config: PartyConfig,
    *,
    resume: bool = False,
    noise: NoiseSource | None = None,
    progress: Progress = silent,
    lost: Lost = lambda why: None,
) -> LabelResult:
    """Fulfil the contract as the label party; arguments and errors as of the data party.

    Where labels are protected, responses to them come from `noise`.
    """
    started, own = time.perf_counter(), config.party
    decimals = config.shared.run.task != "classification"
    with (
        own_state(config, resume=resume) as state,
        party_journal(config, resume=resume, source=DRAWN_THERE, progress=progress) as told,
        meeting_place(config, waiting=waiting_shown(config, told.progress)) as connect,
    ):
        labels = open_labels(own.folder, decimals=decimals)
        aligned = read_aligned(own.state)
        if aligned is not None:
            labels = only_aligned(labels, aligned)
        responses = _responses(config, labels, noise or NoiseSource.from_os(), resume=resume)
        with closing_in_words(party_channel(config, connect, lost)) as channel:
            outcome = label_end(
                config.shared,
                labels,
                Link(Role.LABEL, channel),
                checkpoints=FileCheckpoints(state / "checkpoint.npz", channel),
                progress=told.progress,
                told=told,
                responses=responses,
            )
            result = _label_result(config, outcome, channel.session, time.perf_counter() - started)
            with new_folder(state / "result") as out:  # whatever the peer does from here on
                write_run(out, config.shared, result, label_party=outcome.label_side.module)
                calibration = objective_of(config.shared, labels).calibration(labels.classes)
                keep_for_questions(out, outcome.agreement.sizes, calibration)
            channel.finish(patience=own.patience)
            channel.linger()
    return result


def _responses(
    config: PartyConfig, labels: LabelHoldings, noise: NoiseSource, *, resume: bool
) -> Responses | None:
    """Responses to labels where they are protected; those that the run began with."""
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
        )


def _label_result(
    config: PartyConfig, outcome: LabelOutcome, session: str, seconds: float
) -> LabelResult:
    promise = outcome.agreement.method.promise(config.shared, outcome.agreement.sizes)
    best = outcome.best_stage
    return LabelResult(
        method=config.shared.run.method,
        metric=outcome.metric,
        validation=outcome.stages[best]["validation"],
        test=outcome.stages[best].get("test"),
        chosen_stage=best,
        stages=outcome.stages,
        seconds=seconds,
        peak_memory_bytes=peak_memory(),
        bytes_sent=outcome.bytes_sent,
        session=session,
        privacy=facts_of(
            promise, source=DRAWN_THERE, label_epsilon=config.shared.privacy.label_epsilon
        ),
    )
