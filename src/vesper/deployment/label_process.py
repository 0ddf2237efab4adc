"""The label party of a run over the network, with one data party or several.

Its state folder is like that of the data party (`data_process`). With several data parties, what
belongs to one pair is in `state/with/<name>`, and the result has a saved run for each pair:

    result/with/<name>/  contract.json   result/ config, result, label_party.npz, label_run.json

The joined decoder is a sum over parties, so the part of one party is a decoder of its own. A party
that has left cannot be queried, and has no saved run.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

from vesper.datasets.folders import new_folder
from vesper.deployment.alignment.aligned_file import drop_unaligned_labels, read_aligned
from vesper.deployment.config.multi_party_config import MultiPartyConfig, single_party_config
from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.connect import open_party_journal
from vesper.deployment.data_peers import data_peer_channel, hold_state_folders, make_data_peers
from vesper.deployment.own_graph import run_own_graph
from vesper.deployment.party_ledger import open_party_ledger
from vesper.deployment.saved_run import save_label_run
from vesper.deployment.state_folder import (
    guard_labels,
    guard_ledger,
    guard_parties,
    refuse_lost_ledger,
)
from vesper.graph.labels import LabelHoldings, open_labels
from vesper.mechanism.noise import NoiseSource
from vesper.model.decoders import JoinedDecoder
from vesper.model.evaluation import Calibration
from vesper.model.objective_factory import LabelResponses
from vesper.privacy.ledger.store import key_of
from vesper.session.checkpoint import FileCheckpoints
from vesper.session.contract import approve
from vesper.session.evaluation_file import write_evaluation
from vesper.session.label_responses import label_table_fingerprint, make_label_responses
from vesper.session.label_side import LabelOutcome, label_objective, run_label_session
from vesper.session.observer import NO_OBSERVER, SessionObserver
from vesper.session.result import (
    DRAWN_BY_DATA_PARTY,
    LabelResult,
    PartyFacts,
    peak_memory,
    privacy_facts_of,
    write_run,
)
from vesper.session.run_spec import least_private
from vesper.transport.durable_channel import DurableChannel


def save_peer_runs(
    out: Path,
    table: MultiPartyConfig,
    outcome: LabelOutcome,
    result: LabelResult,
    calibration: Calibration,
) -> None:
    """Write a saved run for each data party that is still there."""
    decoder = outcome.label_side
    modules = (
        list(decoder.party_decoders) if isinstance(decoder, JoinedDecoder) else [decoder.module]
    )
    for number, (pair, facts) in enumerate(zip(table.peer_configs, result.parties, strict=True)):
        if facts.left:
            continue
        assert facts.session is not None
        folder = out / "with" / facts.name
        (folder / "result").mkdir(parents=True)
        approve(folder, pair.shared)
        own = replace(result, session=facts.session, privacy=facts.privacy, parties=())
        write_run(folder / "result", pair.shared, own, label_party=modules[number])
        sizes = outcome.run_specs[number].sizes
        save_label_run(folder / "result", sizes, calibration)


def remaining_peers(table: MultiPartyConfig) -> list[PartyConfig]:
    """List the remote data parties of a finished run that have not left it."""
    if not table.peer_settings:
        return list(table.peer_configs)
    own = [party.name for party in table.peer_settings if party.own]
    return [pair for pair, _ in saved_peer_runs(table) if pair.party.peer not in own]


def saved_peer_runs(table: MultiPartyConfig) -> list[tuple[PartyConfig, PartyConfig]]:
    """List the pairs that have a saved run: settings to connect with, and to read the run with."""
    saved = table.own.party.state / "result" / "with"
    pairs = []
    for pair in table.peer_configs:
        folder = saved / pair.party.peer
        if folder.is_dir():
            party = pair.party.model_copy(update={"state": folder})
            pairs.append((pair, pair.model_copy(update={"party": party})))
    return pairs


def run_label_party(
    config: PartyConfig,
    *,
    resume: bool = False,
    noise: NoiseSource | None = None,
    observer: SessionObserver = NO_OBSERVER,
) -> LabelResult:
    """Fulfil the contract with one data party; arguments and errors as for `run_data_party`.

    `noise` is the source of label responses, where labels are protected.
    """
    return run_label_party_with_peers(
        single_party_config(config), resume=resume, noise=noise, observer=observer
    )


def run_label_party_with_peers(
    table: MultiPartyConfig,
    *,
    resume: bool = False,
    noise: NoiseSource | None = None,
    observer: SessionObserver = NO_OBSERVER,
) -> LabelResult:
    """Fulfil the contracts with all data parties at once; `noise` is for the own graph as well."""
    started, config, own = time.perf_counter(), table.own, table.own.party
    noise = noise or NoiseSource.from_os()
    decimals = config.shared.run.task != "classification"
    with (
        hold_state_folders(table, resume=resume) as state,
        open_party_journal(
            config, resume=resume, source=DRAWN_BY_DATA_PARTY, observer=observer
        ) as journal,
        ExitStack() as stack,
    ):
        guard_parties(state, [party.name for party in table.peer_settings], resume=resume)
        labels = open_labels(own.folder, decimals=decimals)
        for pair in table.peer_configs:
            aligned = read_aligned(pair.party.state)
            if aligned is not None:
                labels = drop_unaligned_labels(labels, aligned)
        responses = _responses(config, labels, noise, resume=resume, observer=journal)
        graph = None
        if table.graph is not None:
            has_started = (table.own_graph_peer.party.state / "session").exists()
            graph = stack.enter_context(
                run_own_graph(table.graph, resume=has_started, noise=noise, warn=journal.warning)
            )
        channels = [
            stack.enter_context(data_peer_channel(table, k, graph, journal))
            for k in range(len(table.peer_configs))
        ]
        outcome = run_label_session(
            make_data_peers(table, channels),
            labels,
            checkpoints=FileCheckpoints(state / "checkpoint.npz", *channels),
            observer=journal,
            responses=responses,
        )
        result = _label_result(table, outcome, channels, seconds=time.perf_counter() - started)
        for channel in channels:
            channel.flush_received()  # a finished party helps its peers from the log alone
        with new_folder(state / "result") as out:  # complete, whatever the peers do from here on
            write_run(out, config.shared, result, label_party=outcome.label_side.module)
            write_evaluation(out, config.shared, labels, outcome.validation_scores)
            calibration = label_objective(config.shared, labels).calibration(labels.classes)
            if table.peer_settings:
                save_peer_runs(out, table, outcome, result, calibration)
            else:
                save_label_run(out, outcome.run_spec.sizes, calibration)
        for pair, channel in zip(table.peer_configs, channels, strict=True):
            if pair.party.peer not in outcome.lost_peers:
                channel.finish(patience=pair.party.patience)
                channel.linger()
    return result


def _responses(
    config: PartyConfig,
    labels: LabelHoldings,
    noise: NoiseSource,
    *,
    resume: bool,
    observer: SessionObserver,
) -> LabelResponses | None:
    """Make label responses where labels are protected; a resumed run uses the same ones."""

    def warn_of_changed_labels(count: int) -> None:
        observer.warning(
            f"{count} labels have changed since their first response was drawn under {own.ledger}; "
            f"the first responses stay in use, so that nobody learns of the change. To train on "
            f"today's labels, use another ledger, and add both epsilons"
        )

    own = config.party
    if config.shared.privacy.label_epsilon is None:
        return None
    refuse_lost_ledger(own.state, own.ledger, resume=resume)
    with closing(open_party_ledger(config)) as ledger:
        guard_ledger(own.state, ledger, resume=resume)
        table = label_table_fingerprint(labels, key=key_of(ledger))
        guard_labels(own.state, table, resume=resume)
        return make_label_responses(
            config.shared,
            labels,
            ledger=ledger,
            noise=noise,
            stale=warn_of_changed_labels,
        )


def _label_result(
    table: MultiPartyConfig,
    outcome: LabelOutcome,
    channels: Sequence[DurableChannel],
    *,
    seconds: float,
) -> LabelResult:
    noise_plans = [each.noise_plan for each in outcome.run_specs]
    label_epsilon = table.own.shared.privacy.label_epsilon
    best, sessions = outcome.best_stage, [channel.session for channel in channels]
    return LabelResult(
        method=table.own.shared.run.method,
        metric=outcome.metric,
        validation=outcome.stages[best]["validation"],
        test=outcome.stages[best].get("test"),
        chosen_stage=best,
        stages=outcome.stages,
        seconds=seconds,
        peak_memory_bytes=peak_memory(),
        bytes_sent=sum(channel.bytes_sent for channel in channels),
        session=sessions[0],
        privacy=privacy_facts_of(
            least_private(noise_plans), source=DRAWN_BY_DATA_PARTY, label_epsilon=label_epsilon
        ),
        parties=tuple(
            PartyFacts(
                party.name,
                own=party.own,
                privacy=privacy_facts_of(
                    noise_plan, source=DRAWN_BY_DATA_PARTY, label_epsilon=label_epsilon
                ),
                session=session,
                left=party.name in outcome.lost_peers,
            )
            for party, noise_plan, session in zip(
                table.peer_settings, noise_plans, sessions, strict=False
            )
        ),
    )
