"""One party of a run over the network, from its file to its result; goes on after a crash.

state/  contract.json   approved settings          frames/, session, receipts.tsv   what crossed
checkpoint.npz  where to go on from        releases/   the data party's, drawn once
result/         config, result, model      lock        held while the party runs
"""

import os
import resource
import secrets
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from vesper.datasets.folders import new_folder
from vesper.errors import PeerLostError
from vesper.graph.holdings import open_data
from vesper.graph.labels import open_labels
from vesper.mechanism.door import Door
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.vault import Vault
from vesper.privacy.ledger import Ledger
from vesper.progress import Progress, silent
from vesper.protocol.messages import Farewell
from vesper.protocol.turns import Role
from vesper.run.agreement import Agreement, refuse_no_features
from vesper.run.alignment.aligned_file import only_aligned, read_aligned, refuse_unaligned
from vesper.run.doors import open_door
from vesper.run.ends.checkpoint import FileCheckpoints
from vesper.run.ends.data_end import data_end
from vesper.run.ends.label_end import label_end, objective_of
from vesper.run.ends.link import Link
from vesper.run.network.meet import meeting_place, waiting_shown
from vesper.run.network.own_state import held, own_state, run_name
from vesper.run.result import SECURE, SIMULATED, DataResult, LabelResult, facts_of, write_run
from vesper.run.serving.kept_run import feature_columns, keep_for_answers, keep_for_questions
from vesper.run.setup.party_config import PartyConfig
from vesper.transport.lasting import Connect, LastingChannel

Lost = Callable[[str], None]
"""Is told why the connection was lost, each time it is."""


def run_data_party(
    config: PartyConfig,
    *,
    resume: bool = False,
    noise: NoiseSource | None = None,
    progress: Progress = silent,
    lost: Lost = lambda why: None,
) -> DataResult:
    """Fulfil the contract as the data party.

    Args:
        config: this party's file; its contract must be approved.
        resume: go on with the run in the state folder.
        noise: where noise comes from; by default the operating system.
        progress: is told how far it is, and for whom it waits.
        lost: is told each time the connection is lost.

    Raises:
        InputError: something must be set right first; nothing was charged or sent.
        BudgetError: the budget of the graph does not allow the run.
        PeerError: the peer failed; `resume` goes on.
    """
    started, own = time.perf_counter(), config.party
    noise = noise or NoiseSource.from_os()
    assert own.ledger is not None
    with (
        own_state(config, resume=resume) as state,
        meeting_place(config, waiting=waiting_shown(config, progress)) as connect,
    ):
        data, columns = open_data(own.folder, progress=progress), feature_columns(own.folder)
        refuse_no_features(data)
        aligned = read_aligned(own.state)
        if aligned is not None:
            refuse_unaligned(data.ids, aligned, own.folder)
        with (
            closing(Ledger(own.ledger, clock=time.time)) as ledger,
            closing(_channel(config, connect, lost)) as channel,
        ):

            def prepare(agreement: Agreement) -> tuple[Door, Agreement]:
                promise = agreement.method.promise(agreement.config, agreement.sizes)
                if promise.plan == "paper" and noise.is_private:
                    agreement = _with_secret_seed(agreement, state / "seed")
                return open_door(
                    agreement,
                    data.graph,
                    ledger,
                    noise,
                    run=run_name(channel.session),
                    vault=Vault(state / "releases"),
                    before_drawing=channel.refuse_if_behind,
                )

            if resume:
                channel.meet()  # what the peer has decides what may still be drawn
            link = Link(Role.DATA, channel)
            outcome = data_end(
                config.shared,
                data,
                link,
                prepare=prepare,
                checkpoints=FileCheckpoints(state / "checkpoint.npz", channel),
                progress=progress,
            )
            channel.finish(patience=own.patience)
            try:
                link.expect(Farewell)
            except PeerLostError as error:
                lost(f"{error}; the run is complete on this side")
            session = channel.session
        promise = outcome.agreement.method.promise(config.shared, outcome.agreement.sizes)
        result = DataResult(
            method=config.shared.run.method,
            seconds=time.perf_counter() - started,
            peak_memory_bytes=_peak_memory(),
            bytes_sent=outcome.bytes_sent,
            session=session,
            privacy=facts_of(promise, source=SECURE if noise.is_private else SIMULATED),
        )
        with new_folder(state / "result") as out:
            write_run(out, config.shared, result, data_party=outcome.data_side.module)
            keep_for_answers(out, outcome, data, columns)
    return result


def run_label_party(
    config: PartyConfig,
    *,
    resume: bool = False,
    progress: Progress = silent,
    lost: Lost = lambda why: None,
) -> LabelResult:
    """Fulfil the contract as the label party; arguments and errors as of the data party."""
    started, own = time.perf_counter(), config.party
    decimals = config.shared.run.task != "classification"
    with (
        own_state(config, resume=resume) as state,
        meeting_place(config, waiting=waiting_shown(config, progress)) as connect,
    ):
        labels = open_labels(own.folder, decimals=decimals)
        aligned = read_aligned(own.state)
        if aligned is not None:
            labels = only_aligned(labels, aligned)
        with closing(_channel(config, connect, lost)) as channel:
            outcome = label_end(
                config.shared,
                labels,
                Link(Role.LABEL, channel),
                checkpoints=FileCheckpoints(state / "checkpoint.npz", channel),
                progress=progress,
            )
            channel.finish(patience=own.patience)
            channel.linger()
            session = channel.session
        promise = outcome.agreement.method.promise(config.shared, outcome.agreement.sizes)
        best = outcome.best_stage
        result = LabelResult(
            method=config.shared.run.method,
            metric=outcome.metric,
            validation=outcome.stages[best]["validation"],
            test=outcome.stages[best].get("test"),
            chosen_stage=best,
            stages=outcome.stages,
            seconds=time.perf_counter() - started,
            peak_memory_bytes=_peak_memory(),
            bytes_sent=outcome.bytes_sent,
            session=session,
            privacy=facts_of(promise, source="drawn by the data party"),
        )
        with new_folder(state / "result") as out:
            write_run(out, config.shared, result, label_party=outcome.label_side.module)
            calibration = objective_of(config.shared, labels).calibration(labels.classes)
            keep_for_questions(out, outcome.agreement.sizes, calibration)
    return result


def is_finished(config: PartyConfig) -> bool:
    """Whether this side of the run is complete."""
    return (config.party.state / "result").exists()


def stay_for_peer(
    config: PartyConfig, *, progress: Progress = silent, lost: Lost = lambda why: None
) -> None:
    """Give a peer that was cut off at the very end what it has not got.

    Raises:
        PeerLostError: it has not come within the patience.
    """
    with (
        held(config.party.state),
        meeting_place(config, waiting=waiting_shown(config, progress)) as connect,
        closing(_channel(config, connect, lost)) as channel,
    ):
        channel.finish(patience=config.party.patience)
        channel.meet()
        channel.linger()


def _channel(config: PartyConfig, connect: Connect, lost: Lost) -> LastingChannel:
    is_data = config.party.role == "data"
    directions = ("data>label", "label>data")
    return LastingChannel(
        connect,
        config.party.state,
        begins=is_data,
        directions=directions if is_data else directions[::-1],
        waits=config.party.when_lost == "wait",
        lost=lost,
    )


def _with_secret_seed(agreement: Agreement, path: Path) -> Agreement:
    """Noise and samples of a plan without account come from a seed that the peer must not know."""
    if not path.exists():
        partial = path.with_suffix(".partial")
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(str(secrets.randbits(62)))
        os.replace(partial, path)
    run = agreement.config.run.model_copy(update={"seed": int(path.read_text())})
    return replace(agreement, config=agreement.config.model_copy(update={"run": run}))


def _peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
