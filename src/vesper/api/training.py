"""One fit: both parties train in this process, every release charged to a ledger.

Progress for people who asked for it: a bar on standard error, in a terminal or a notebook.

A fit leaves torch as it found it.

Numba's pool, where something starts it, sets the number of threads of torch in the whole process,
and weights begin from torch's own generator: neither is the caller's business.
"""

import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from vesper.api.encoder import MakeEncoder, with_encoder
from vesper.api.fitted import FittedModel, InProcessPredictor
from vesper.api.inputs import FitInputs
from vesper.errors import InputError
from vesper.mechanism.noise import NoiseSource
from vesper.method.settings import Config
from vesper.model.objective_factory import make_objective
from vesper.privacy.ledger.store import Ledger
from vesper.progress import Progress, no_progress
from vesper.report.budget_section import run_charges_of
from vesper.report.contents import Contents
from vesper.report.privacy import NO_EDGE, NO_GUARANTEE, ONLY_THIS_FIT, privacy_of
from vesper.session.doors import open_door
from vesper.session.label_responses import make_label_responses
from vesper.session.observer import ProgressObserver
from vesper.session.result import simulated_run_name
from vesper.session.run_spec import run_spec_for
from vesper.simulation.in_process import train


@contextmanager
def progress_reporter(wanted: bool | Progress) -> Iterator[Progress]:
    """Give something to report to: nobody, a bar, or what the user gave."""
    if callable(wanted):
        yield wanted
    elif not wanted:
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


SEEDS = 1 << 31


def random_seed() -> int:
    """A seed of weights and batches that nobody knows beforehand; noise never comes from it."""
    return secrets.randbelow(SEEDS)


def fit_in_process(
    config: Config,
    inputs: FitInputs,
    *,
    is_simulated: bool,
    ledger: Path | None,
    encoder: MakeEncoder | None = None,
    progress: Progress = no_progress,
) -> FittedModel:
    """Train, and keep what predictions and pages need.

    Args:
        config: checked settings.
        inputs: what the parties hold.
        is_simulated: noise from the seed, which can be repeated and protects nothing.
        ledger: file to charge; None for one that goes away.
        encoder: makes the encoder; None for the one that settings name.
        progress: is told how far the fit is.
    """
    started = time.perf_counter()
    run_spec = run_spec_for(config, inputs.data, inputs.labels)
    if encoder is not None:
        run_spec = replace(run_spec, method=with_encoder(run_spec.method, encoder))
    sizes = run_spec.sizes
    with _open_ledger(ledger) as book:
        seed = config.run.seed
        noise = NoiseSource.for_simulation(seed) if is_simulated else NoiseSource.from_os()
        run = simulated_run_name(config) if is_simulated else config.contract[:12]
        door, run_spec = open_door(run_spec, inputs.data.graph, book, noise, run=run)
        responses = make_label_responses(
            config, inputs.labels, ledger=book, noise=noise, stale=_refuse_other_labels
        )
        trained = train(
            run_spec,
            inputs.data,
            inputs.labels,
            door,
            observer=ProgressObserver(progress),
            responses=responses,
        )
        privacy = privacy_of(
            run_spec.noise_plan,
            has_secure_noise=noise.is_private,
            covers=_covers(run_spec.noise_plan.plan, ledger),
            run_charges=run_charges_of(book, run=run, has_ledger_file=ledger is not None),
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
    return FittedModel(InProcessPredictor(trained, objective), inputs, contents)


def _covers(plan: str, ledger: Path | None) -> str:
    """What the budget counts: without a guarantee there is none, and a ledger may hold more."""
    if plan == "certified":
        return ONLY_THIS_FIT if ledger is None else f"everything charged to {ledger.name}"
    if plan == "edge-free":
        return (
            NO_EDGE if ledger is None else f"{NO_EDGE}; what others have read is in {ledger.name}"
        )
    return NO_GUARANTEE


@contextmanager
def _open_ledger(ledger: Path | None) -> Iterator[Ledger]:
    with tempfile.TemporaryDirectory(prefix="vesper-") as folder:
        path = ledger or Path(folder) / "ledger.sqlite"
        with closing(Ledger(path, clock=time.time)) as book:
            yield book


def _refuse_other_labels(count: int) -> None:
    """Refuse to answer about other labels under a ledger: rows of a fit are called by number.

    Raises:
        InputError: this ledger has answered about others.
    """
    raise InputError(
        f"ledger: {count} rows have another label than when this ledger was first charged for "
        f"labels; for another data set, or other labels, give ledger= a file of its own"
    )


@contextmanager
def preserve_torch_state() -> Iterator[None]:
    """Put the number of threads and the state of the generator back, whatever happens."""
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_rng_state(state)
