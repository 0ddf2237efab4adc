"""The data party of a run over the network, from its file to its result; resumes after a crash.

state/   contract.json                     approved settings
         frames/, session, transcript.tsv  what crossed
         releases/                         release store
         checkpoint.npz                    where the run resumes
         ledger, labels, parties           resume guards: what the run began with
         seed                              secret seed of a plan without account
         progress.jsonl                    journal
         lock                              held while the party runs
         result/                           config, result, model, saved run
"""

import secrets
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from vesper.datasets.folders import new_folder
from vesper.deployment.alignment.aligned_file import read_aligned, refuse_unaligned
from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.connect import (
    PeerConnector,
    open_party_channel,
    open_party_journal,
    peer_connector,
    show_waiting,
)
from vesper.deployment.party_ledger import (
    open_party_ledger,
    refuse_unnamed_graph,
    reserve_for_party,
)
from vesper.deployment.saved_run import save_data_run
from vesper.deployment.state_folder import (
    data_close_reason,
    guard_ledger,
    hold_state_folder,
    named_session,
    refuse_lost_ledger,
    session_run_name,
)
from vesper.engine.choice import use_engine
from vesper.errors import PeerError
from vesper.files import replace_file
from vesper.graph.features import feature_columns
from vesper.graph.holdings import open_data
from vesper.mechanism.door import Door
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.release_store import ReleaseStore
from vesper.privacy.ledger.overlap_report import describe_change, describe_overlaps, warn_owner
from vesper.privacy.ledger.reservation import return_unused
from vesper.protocol.codec import encode
from vesper.protocol.messages import Farewell, SessionFinished
from vesper.protocol.turns import Role
from vesper.session.checkpoint import FileCheckpoints
from vesper.session.data_side import run_data_session
from vesper.session.doors import open_door
from vesper.session.observer import NO_OBSERVER, SessionObserver
from vesper.session.peer import Link
from vesper.session.result import (
    SECURE,
    SIMULATED,
    DataResult,
    peak_memory,
    privacy_facts_of,
    write_run,
)
from vesper.session.run_spec import RunSpec, refuse_no_features
from vesper.transport.channel import closing_with_reason


def with_secret_seed(run_spec: RunSpec, path: Path) -> RunSpec:
    """Replace the seed by one that the peer must not know; noise and samples come from it.

    It is stored in `path`, so that a resumed run uses the same. For plans without account.
    """
    if not path.exists():
        replace_file(path, str(secrets.randbits(62)).encode())
    run = run_spec.config.run.model_copy(update={"seed": int(path.read_text())})
    return replace(run_spec, config=run_spec.config.model_copy(update={"run": run}))


def run_data_party(
    config: PartyConfig,
    *,
    resume: bool = False,
    noise: NoiseSource | None = None,
    observer: SessionObserver = NO_OBSERVER,
    connector: PeerConnector = peer_connector,
) -> DataResult:
    """Fulfil the contract as the data party.

    Args:
        config: settings of this party; its contract must be approved.
        resume: continue the run in the state folder.
        noise: source of noise; by default the operating system.
        observer: receives progress, epochs and warnings.
        connector: how to reach the peer; by default at the address in the settings.

    Raises:
        InputError: something must be fixed first; nothing was charged or sent.
        BudgetError: the budget of the graph does not allow the run.
        PeerError: the peer failed; the run can be resumed.
    """
    started, own = time.perf_counter(), config.party
    noise = noise or NoiseSource.from_os()
    source = SECURE if noise.is_private else SIMULATED
    with (
        use_engine(own.engine, address=own.ray_address, progress=observer.progress),
        hold_state_folder(config, resume=resume) as state,
        open_party_journal(config, resume=resume, source=source, observer=observer) as journal,
        ExitStack() as stack,
    ):
        data = open_data(own.folder, progress=journal.progress)
        columns = feature_columns(own.folder)
        refuse_no_features(data)
        aligned = read_aligned(own.state)
        if aligned is not None:
            refuse_unaligned(data.ids, aligned, own.folder)
        refuse_unnamed_graph(config, data)
        refuse_lost_ledger(state, own.ledger, resume=resume)
        ledger = stack.enter_context(closing(open_party_ledger(config)))
        guard_ledger(state, ledger, resume=resume)
        run = session_run_name(named_session(state))
        # Before anybody can see this party: whether it refuses depends on its graph and account.
        reserve_for_party(config, data, ledger, run=run, is_simulated=not noise.is_private)
        if own.graph is not None:
            warn_owner(journal.warning, partial(describe_overlaps, ledger, own.graph))
            warn_owner(journal.warning, partial(describe_change, ledger, own.graph, run=run))
        with (
            connector(
                config, waiting=show_waiting(config, journal), warn=journal.warning
            ) as connect,
            closing_with_reason(
                open_party_channel(config, connect, journal),
                partial(data_close_reason, config, resumed=resume),
            ) as channel,
        ):

            def door_opener(run_spec: RunSpec) -> tuple[Door, RunSpec]:
                if run_spec.noise_plan.plan == "paper" and noise.is_private:
                    run_spec = with_secret_seed(run_spec, state / "seed")
                return open_door(
                    run_spec,
                    data.graph,
                    ledger,
                    noise,
                    name=own.graph,
                    run=run,
                    release_store=ReleaseStore(state / "releases"),
                    before_drawing=channel.refuse_stale_copy,
                )

            if resume and not channel.has_sent(encode(SessionFinished())):
                channel.connect_now()  # frames that the peer has decide what may still be drawn
            link = Link(Role.DATA, channel)
            outcome = run_data_session(
                config.shared,
                data,
                link,
                door_opener=door_opener,
                checkpoints=FileCheckpoints(state / "checkpoint.npz", channel),
                observer=journal,
            )
            result = DataResult(
                method=config.shared.run.method,
                seconds=time.perf_counter() - started,
                peak_memory_bytes=peak_memory(),
                bytes_sent=channel.bytes_sent,
                session=channel.session,
                privacy=privacy_facts_of(
                    outcome.run_spec.noise_plan,
                    source=source,
                    label_epsilon=config.shared.privacy.label_epsilon,
                ),
            )
            channel.flush_received()  # a finished party helps its peer from the log alone
            with new_folder(state / "result") as out:  # complete, whatever the peer does now
                write_run(out, config.shared, result, data_party=outcome.data_side.module)
                save_data_run(out, outcome, data, columns)
            return_unused(ledger, run=run)  # it will never need the rest
            channel.finish(patience=own.patience)
            try:
                link.expect(Farewell)
            except PeerError as error:
                journal.warning(f"{error}; the run is complete on this side")
    return result
