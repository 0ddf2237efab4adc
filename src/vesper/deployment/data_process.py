"""The data party of a run over the network, from its file to its result; goes on after a crash.

state/  contract.json   approved settings          frames/, session, receipts.tsv   what crossed
checkpoint.npz  where to go on from        releases/   the data party's, drawn once
result/         config, result, model      lock        held while the party runs
ledger, labels  which ones the run began with   progress.jsonl  for people who watch

A seed that the peer must not know, kept in the state folder so that a run can go on.
"""

import secrets
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from vesper.datasets.folders import new_folder
from vesper.deployment.alignment.aligned_file import read_aligned, refuse_unaligned
from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.connect import (
    Lost,
    Place,
    meeting_place,
    party_channel,
    party_journal,
    waiting_shown,
)
from vesper.deployment.preflight import budget_for_run
from vesper.deployment.saved_run import feature_columns, keep_for_answers
from vesper.deployment.state_folder import (
    hold_to_ledger,
    is_charged,
    own_state,
    refuse_lost_ledger,
    run_name,
)
from vesper.engine.choice import working_on
from vesper.errors import PeerError
from vesper.files import write_whole
from vesper.graph.holdings import open_data
from vesper.mechanism.door import Door
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.release_store import Vault
from vesper.privacy.ledger.store import Ledger
from vesper.progress import Progress, silent
from vesper.protocol.messages import Farewell
from vesper.protocol.turns import Role
from vesper.session.checkpoint import FileCheckpoints
from vesper.session.data_side import data_end
from vesper.session.doors import open_door
from vesper.session.peer import Link
from vesper.session.result import SECURE, SIMULATED, DataResult, facts_of, peak_memory, write_run
from vesper.session.run_spec import Agreement, refuse_no_features
from vesper.transport.channel import closing_in_words


def with_secret_seed(agreement: Agreement, path: Path) -> Agreement:
    """Noise and samples of a plan without account come from a seed that the peer must not know."""
    if not path.exists():
        write_whole(path, str(secrets.randbits(62)).encode())
    run = agreement.config.run.model_copy(update={"seed": int(path.read_text())})
    return replace(agreement, config=agreement.config.model_copy(update={"run": run}))


def run_data_party(
    config: PartyConfig,
    *,
    resume: bool = False,
    noise: NoiseSource | None = None,
    progress: Progress = silent,
    lost: Lost = lambda why: None,
    place: Place = meeting_place,
) -> DataResult:
    """Fulfil the contract as the data party.

    Args:
        config: this party's file; its contract must be approved.
        resume: go on with the run in the state folder.
        noise: where noise comes from; by default the operating system.
        progress: is told how far it is, and for whom it waits.
        lost: is told each time the connection is lost.
        place: where the two meet; by default as the file says.

    Raises:
        InputError: something must be set right first; nothing was charged or sent.
        BudgetError: the budget of the graph does not allow the run.
        PeerError: the peer failed; `resume` goes on.
    """
    started, own = time.perf_counter(), config.party
    noise = noise or NoiseSource.from_os()
    source = SECURE if noise.is_private else SIMULATED
    assert own.ledger is not None
    with (
        working_on(own.engine, address=own.ray_address, progress=progress),
        own_state(config, resume=resume) as state,
        party_journal(config, resume=resume, source=source, progress=progress) as told,
    ):
        data, columns = open_data(own.folder, progress=told.progress), feature_columns(own.folder)
        refuse_no_features(data)
        aligned = read_aligned(own.state)
        if aligned is not None:
            refuse_unaligned(data.ids, aligned, own.folder)
        refuse_lost_ledger(state, own.ledger, resume=resume)
        if not is_charged(config):  # before anybody can see this party: it follows from edges
            budget_for_run(config.shared, data, own.ledger)
        with (
            place(config, waiting=waiting_shown(config, told.progress)) as connect,
            closing(Ledger(own.ledger, clock=time.time)) as ledger,
            closing_in_words(party_channel(config, connect, lost)) as channel,
        ):
            hold_to_ledger(state, ledger, resume=resume)

            def prepare(agreement: Agreement) -> tuple[Door, Agreement]:
                if agreement.noise_plan.plan == "paper" and noise.is_private:
                    agreement = with_secret_seed(agreement, state / "seed")
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
                progress=told.progress,
                told=told,
            )
            channel.finish(patience=own.patience)
            try:
                link.expect(Farewell)
            except PeerError as error:
                lost(f"{error}; the run is complete on this side")
            session = channel.session
        result = DataResult(
            method=config.shared.run.method,
            seconds=time.perf_counter() - started,
            peak_memory_bytes=peak_memory(),
            bytes_sent=outcome.bytes_sent,
            session=session,
            privacy=facts_of(
                outcome.agreement.noise_plan,
                source=source,
                label_epsilon=config.shared.privacy.label_epsilon,
            ),
        )
        with new_folder(state / "result") as out:
            write_run(out, config.shared, result, data_party=outcome.data_side.module)
            keep_for_answers(out, outcome, data, columns)
    return result
