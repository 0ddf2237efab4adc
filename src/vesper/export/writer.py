"""Writer of an export: the data party's released features as a signed file, for any learner.

    with labels      trains stage by stage, as `simulate` does; stage logits and released sums
    without labels   released sums of a projection of the features

Everything in the file is released through the door or computed from edge-free data and releases,
so its statement covers every use of it (claim POST).
"""

import math
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from vesper.errors import InputError
from vesper.export.release_file import new_export_file
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import LabelHoldings, open_labels
from vesper.graph.summary import refuse_unknown_labels
from vesper.mechanism.door import ChargedDoor
from vesper.mechanism.noise import NoiseSource
from vesper.method.base import NoisePlan, PublicSizes
from vesper.method.certified.staged_representation import StagedRepresentation
from vesper.method.export_columns import ExportColumns, label_free_columns
from vesper.method.noise_plan import certified_plan
from vesper.method.settings import Config
from vesper.privacy.ledger.graph_name import (
    SIMULATED_GRAPH,
    SIMULATED_NOISE_NEEDS_NO_LEDGER,
    expect_graph_name,
)
from vesper.privacy.ledger.ledger_file import default_ledger
from vesper.privacy.ledger.overlap_report import describe_overlaps, warn_owner
from vesper.privacy.ledger.reservation import return_unused
from vesper.privacy.ledger.run_balance import balance_of_run
from vesper.privacy.ledger.statement import (
    ReleasedFile,
    make_statement,
    statement_path,
    verify_file,
)
from vesper.privacy.ledger.store import Ledger
from vesper.progress import Progress, no_progress
from vesper.session.observer import ProgressObserver
from vesper.session.result import new_run_name
from vesper.session.run_reservation import planned_config, reserve_run
from vesper.session.run_spec import run_spec_for
from vesper.simulation.in_process import train

COLUMN_MEANINGS = {
    "own_*": "principal components of the node's own features; no edge was read",
    "stage0_*": "logits from the node's own features, classes ascending, fitted on the training "
    "nodes whose labels were shared; no edge was read",
    "hop*_degree": "noisy number of neighbours; with aggregator gcn, scaled down from hop 2 on",
    "hop*_*": "sum of neighbours' messages with noise, or what another aggregator computes",
    "stage*_*": "logits from features and releases so far, classes ascending, fitted on the "
    "training nodes whose labels were shared; before the correction that the label party makes in "
    "a run",
}
"""Meaning of columns by pattern; the first pattern that fits a name counts."""


@dataclass(frozen=True)
class Export:
    """The files that were written, and the content of the statement."""

    file: Path
    statement: Path
    columns: tuple[str, ...]
    facts: dict[str, Any]


def no_warning(text: str) -> None:
    """Drop a warning."""


def export_features(
    folder: Path,
    config: Config,
    out: Path,
    *,
    graph_name: str | None = None,
    ledger: Path | None = None,
    simulated: bool = False,
    progress: Progress = no_progress,
    warn: Callable[[str], None] = no_warning,
) -> Export:
    """Write released features and their statement.

    Args:
        folder: holds `data/`, and `label/` if labels are shared; or is the data party's own.
        config: checked settings; all of its epsilon is used.
        out: a new file, `.parquet`.
        graph_name: name of the graph to charge; only simulated noise needs none.
        ledger: the data party's; by default this user's. Simulated noise is charged to none.
        simulated: draw noise from the seed of the config: repeatable, not private, and stated so.
        progress: receives progress reports.
        warn: receives warnings for the owner of the graph.

    Raises:
        InputError: settings, folder or file cannot be used; nothing was charged.
        BudgetError: the budget of the graph does not allow it; nothing was charged.
    """
    _refuse_settings(config)
    if simulated and ledger is not None:
        raise InputError(SIMULATED_NOISE_NEEDS_NO_LEDGER.format(ledger="--ledger"))
    name = expect_graph_name(graph_name or (SIMULATED_GRAPH if simulated else None))
    data_folder = folder / "data" if (folder / "data").is_dir() else folder
    with new_export_file(out) as target:
        data = open_data(data_folder, progress=progress)
        labels = None
        if (folder / "label").is_dir():
            decimals = config.run.task != "classification"
            labels = open_labels(folder / "label", decimals=decimals)
            refuse_unknown_labels(data.ids, labels)
        default = target.partial / "ledger.sqlite" if simulated else default_ledger()
        run, noise = new_run_name("export"), NoiseSource.from_os()
        if simulated:
            noise = NoiseSource.for_simulation(config.run.seed)
        noise_plan = _noise_plan(config, data, labels)
        with ExitStack() as stack:
            book = stack.enter_context(closing(Ledger(ledger or default, clock=time.time)))
            stack.callback(return_unused, book, run=run)
            account = reserve_run(
                config,
                [noise_plan],
                data.graph,
                book,
                name=name,
                run=run,
                is_simulated=simulated,
            )
            assert account is not None, "certified releases have an account"
            warn_owner(warn, partial(describe_overlaps, book, account.graph))
            door = ChargedDoor(data.graph, account=account, noise=noise, run=run)
            planned = planned_config(
                config, account.reservations[run].reservation.planned_epsilon, hops=0
            )
            columns = _columns(planned, data, labels, door, progress)

            def statement_for(sha256: str) -> str:
                return make_statement(
                    balance=balance_of_run(book, run, delta=noise_plan.delta),
                    epsilon=config.privacy.epsilon,
                    ledger=book,
                    simulated=simulated,
                    run=run,
                    file=ReleasedFile(out.name, sha256, _column_meanings(columns)),
                    now=time.time(),
                )

            target.write(data.ids, columns, statement_for=statement_for, progress=progress)
    return Export(out, statement_path(out), ("id", *columns), verify_file(out))


def _refuse_settings(config: Config) -> None:
    if math.isinf(config.privacy.epsilon):
        raise InputError("--epsilon: expected a finite number; without noise nothing is certified")
    if config.run.method != "certified":
        raise InputError(
            f"method: expected 'certified', whose releases are certified, got '{config.run.method}'"
        )
    if config.privacy.privacy_unit != "edge":
        raise InputError("privacy_unit: expected 'edge' for an export; `node` is for runs")
    if config.privacy.label_epsilon is not None:
        raise InputError(
            "label_epsilon: expected none for an export, where the data party holds unprotected "
            "labels; leave it out"
        )


def _sizes(data: DataHoldings) -> PublicSizes:
    return PublicSizes(
        num_nodes=data.graph.num_nodes,
        num_train=0,
        num_features=data.features.shape[1],
        num_classes=0,
    )


def _noise_plan(config: Config, data: DataHoldings, labels: LabelHoldings | None) -> NoisePlan:
    if labels is not None:
        return run_spec_for(config, data, labels).noise_plan
    if config.privacy.aggregator != "gin":
        raise InputError(
            f"aggregator: expected 'gin' without labels, because principal components are "
            f"summed, got '{config.privacy.aggregator}'; nothing was charged"
        )
    hops = config.privacy.hops or 1
    return certified_plan(config.privacy, _sizes(data), releases=hops, width=1)


def _columns(
    config: Config,
    data: DataHoldings,
    labels: LabelHoldings | None,
    door: ChargedDoor,
    progress: Progress,
) -> ExportColumns:
    if labels is None:
        return label_free_columns(
            data.features,
            door,
            noise_stds=_noise_plan(config, data, labels).noise_stds,
            degree_share=config.run.degree_share,
        )
    run_spec = run_spec_for(config, data, labels)
    data_side = train(run_spec, data, labels, door, observer=ProgressObserver(progress)).data_side
    assert isinstance(data_side, StagedRepresentation)
    return data_side.columns()


def _column_meanings(columns: ExportColumns) -> dict[str, str]:
    """The meanings of those columns that exist, by pattern."""
    used = {next(p for p in COLUMN_MEANINGS if fnmatchcase(name, p)) for name in columns}
    return {pattern: meaning for pattern, meaning in COLUMN_MEANINGS.items() if pattern in used}
