"""One fit: both parties train in this process, with every release charged to a ledger.

Progress is reported on request, as a bar on standard error or to a callable.

A fit restores the state of torch: starting Numba's pool changes the number of torch threads in the
whole process, and weights are initialised from torch's global generator. Callers see neither.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from vesper.api.encoder import MakeEncoder, with_encoder
from vesper.api.fit_folder import FitFolder
from vesper.api.fitted import FittedModel
from vesper.api.inputs import FitInputs
from vesper.api.trained_model import TrainedModel
from vesper.errors import InputError
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.stored_door import CapturingDoor
from vesper.method.settings import Config
from vesper.model.objective_factory import make_objective
from vesper.privacy.ledger.graph_name import SIMULATED_GRAPH, expect_graph_name
from vesper.privacy.ledger.reservation import return_unused
from vesper.privacy.ledger.store import Ledger
from vesper.progress import Progress, no_progress
from vesper.report.budget_section import run_charges_of
from vesper.report.contents import Contents
from vesper.report.privacy import NO_EDGE, NO_GUARANTEE, ONLY_THIS_FIT, privacy_of
from vesper.session.doors import open_door
from vesper.session.label_responses import make_label_responses
from vesper.session.label_side import label_objective, make_roster
from vesper.session.observer import ProgressObserver
from vesper.session.result import new_run_name
from vesper.session.run_spec import run_spec_for
from vesper.simulation.in_process import train


@contextmanager
def progress_reporter(requested: bool | Progress) -> Iterator[Progress]:
    """Yield where to report progress: nowhere, a bar on standard error, or the user's callable."""
    if callable(requested):
        yield requested
    elif not requested:
        yield no_progress
    else:
        from rich.console import Console
        from rich.progress import Progress as Bars

        with Bars(console=Console(stderr=True)) as bars:
            tasks: dict[str, Any] = {}

            def progress(task: str, done: int, total: int, note: str = "") -> None:
                if task not in tasks:
                    tasks[task] = bars.add_task(task)
                described = f"{task}  {note}".rstrip()
                bars.update(tasks[task], completed=done, total=total or None, description=described)

            yield progress


def fit_in_process(
    config: Config,
    inputs: FitInputs,
    *,
    is_simulated: bool,
    ledger: Path | None,
    graph_name: str | None = None,
    folder: FitFolder | None = None,
    encoder: MakeEncoder | None = None,
    progress: Progress = no_progress,
) -> FittedModel:
    """Train, and return what predictions and report pages need.

    Args:
        config: checked settings.
        inputs: tables of the parties.
        is_simulated: draw noise from the seed; it is repeatable and protects nothing.
        ledger: file to charge; None for a temporary one.
        graph_name: name of the graph to charge; needed for secret noise with a ledger.
        folder: where releases are stored as soon as they are charged, if they are.
        encoder: makes the encoder; None for the one named in the settings.
        progress: receives progress reports.
    """
    started = time.perf_counter()
    run_spec = run_spec_for(config, inputs.data, inputs.labels)
    if encoder is not None:
        run_spec = replace(run_spec, method=with_encoder(run_spec.method, encoder))
    sizes = run_spec.sizes
    needs_name = ledger is not None and not is_simulated
    if needs_name and run_spec.noise_plan.plan != "edge-free":
        expect_graph_name(graph_name, how="graph_name")
    with open_ledger(ledger) as opened_ledger, ExitStack() as stack:
        seed = config.run.seed
        noise = NoiseSource.for_simulation(seed) if is_simulated else NoiseSource.from_os()
        run = folder.run if folder else new_run_name("fit")
        stack.callback(return_unused, opened_ledger, run=run)
        door, run_spec = open_door(
            run_spec,
            inputs.data.graph,
            opened_ledger,
            noise,
            name=graph_name or SIMULATED_GRAPH,
            run=run,
            release_store=folder.release_store() if folder else None,
        )
        captured = CapturingDoor(door)
        responses = make_label_responses(
            config, inputs.labels, ledger=opened_ledger, noise=noise, stale=_refuse_other_labels
        )
        trained = train(
            run_spec,
            inputs.data,
            inputs.labels,
            captured,
            observer=ProgressObserver(progress),
            responses=responses,
        )
        privacy = privacy_of(
            run_spec.noise_plan,
            has_secure_noise=noise.is_private,
            covers=covers(run_spec.noise_plan.plan, ledger),
            run_charges=run_charges_of(opened_ledger, run=run),
        )
    best = trained.best_stage
    contents = Contents(
        method=config.run.method,
        metric=trained.metric,
        validation=trained.stages[best]["validation"],
        test=None,
        chosen_stage=best,
        stages=tuple(trained.stages),
        privacy=privacy,
        config=config,
        sizes={
            "nodes": sizes.num_nodes,
            "training nodes": sizes.num_train,
            "validation nodes": len(inputs.validation),
            "features": sizes.num_features,
            **({"classes": sizes.num_classes} if inputs.targets.has_classes else {}),
        },
        seconds=time.perf_counter() - started,
    )
    objective = make_objective(
        config.run.task,
        inputs.labels.classes,
        inputs.labels.labels,  # training rows first
        num_train=sizes.num_train,
        balanced=config.run.class_weights == "balanced",
    )
    model = TrainedModel(
        run_spec=run_spec,
        data_side=trained.data_side,
        label_side=trained.label_side,
        stage=best,
        last_stage=run_spec.schedule.stages - 1,
        roster=make_roster(
            inputs.labels, label_objective(config, inputs.labels, responses), config
        ),
        features=inputs.data.features,
        ids=inputs.ids,
        calibration=objective.calibration(inputs.labels.classes),
        releases=captured.releases,
        reads_graph=captured.gave_out_graph,
        has_own_encoder=encoder is not None,
    )
    fitted = FittedModel(
        model=model, targets=inputs.targets, distinct=inputs.distinct, contents=contents
    )
    validation = inputs.distinct[inputs.labels.labels[inputs.labels.rows("val")]]
    return fitted.with_validation(inputs.validation, validation)


def covers(plan: str, ledger: Path | None) -> str:
    """Describe what the budget covers: nothing without a guarantee; a ledger may cover more."""
    if plan == "certified":
        return ONLY_THIS_FIT if ledger is None else f"everything charged to {ledger.name}"
    if plan == "edge-free":
        return NO_EDGE if ledger is None else f"{NO_EDGE}; what other fits read is in {ledger.name}"
    return NO_GUARANTEE


@contextmanager
def open_ledger(ledger: Path | None) -> Iterator[Ledger]:
    """Open the ledger at this path, or a temporary one."""
    with tempfile.TemporaryDirectory(prefix="vesper-") as folder:
        path = ledger or Path(folder) / "ledger.sqlite"
        with closing(Ledger(path, clock=time.time)) as opened_ledger:
            yield opened_ledger


def _refuse_other_labels(count: int) -> None:
    """Refuse changed labels under the same ledger, which knows the rows of a fit by number only.

    Raises:
        InputError: this ledger was charged for other labels.
    """
    raise InputError(
        f"ledger: expected the labels that this ledger was first charged for, {count} rows differ; "
        f"use a separate ledger file for another data set or other labels"
    )


@contextmanager
def preserve_torch_state() -> Iterator[None]:
    """Restore the number of torch threads and the state of its generator, whatever happens."""
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_rng_state(state)
