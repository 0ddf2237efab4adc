"""The label party learns from a released file, whose rows need not fit memory.

Everything here is post-processing of the file (claim POST): the statement beside it covers the
model, its predictions, and every further attempt. One process or several (`ranks`) make the same
model, up to the order in which floats are added.
"""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vesper.datasets.folders import new_folder
from vesper.errors import VesperError
from vesper.graph.labels import LabelHoldings, open_labels
from vesper.method.settings import Config
from vesper.partial import partial_folder
from vesper.privacy.statement import verify_file
from vesper.progress import Progress, silent
from vesper.run.hand_off.learner import Learner
from vesper.run.hand_off.ranks import Ranks
from vesper.run.hand_off.released_rows import ReleasedRows, feature_names, write_rows
from vesper.run.result import Facts, peak_memory, refuse_used, write_run
from vesper.run.usable_labels import refuse_unusable_labels


@dataclass(frozen=True)
class LearnResult(Facts):
    """What was reached with a released file, and what that file's statement says."""

    metric: str
    validation: float
    test: float | None
    epochs: int
    rows: int
    columns: int
    processes: int
    seconds: float
    peak_memory_bytes: int
    statement: dict[str, Any]


def learn(
    released: Path,
    labels: Path,
    config: Config,
    out: Path,
    *,
    ranks: Ranks,
    public_key: str | None = None,
    progress: Progress = silent,
) -> LearnResult:
    """Train on a released file and write a run folder.

    Args:
        released: as `vesper release` wrote it, its statement beside it.
        labels: the label party's folder.
        config: `run` says how to train: width, epochs, patience, batch_size, learning_rate, seed.
        out: a new or empty folder.
        ranks: which of several processes this is.
        public_key: the data party's, as it was told by another way.
        progress: is told how far it is.

    Raises:
        InputError: files or settings cannot be used.
        VesperError: the file is not what its statement speaks of, or training diverged.
    """
    started = time.perf_counter()
    refuse_used(out)
    statement = verify_file(released, public_key=public_key)
    holdings = open_labels(labels, decimals=config.run.task != "classification")
    refuse_unusable_labels(config, holdings)
    names = feature_names(released)
    with ExitStack() as stack:
        store = _store(stack, released, holdings, out, ranks, progress)
        rows = ReleasedRows(store, num_rows=len(holdings.ids), width=len(names))
        learner = Learner(config, holdings, rows, ranks)
        found = learner.run(progress)
        result = LearnResult(
            metric=found.metric,
            validation=found.validation,
            test=found.test,
            epochs=found.epochs,
            rows=len(holdings.ids),
            columns=len(names),
            processes=ranks.world,
            seconds=time.perf_counter() - started,
            peak_memory_bytes=peak_memory(),
            statement=statement,
        )
        if ranks.is_first:
            with new_folder(out) as new:
                write_run(new, config, result, model=learner.network, scale=learner.scaling)
        ranks.wait()
    return result


def _store(
    stack: ExitStack,
    released: Path,
    holdings: LabelHoldings,
    out: Path,
    ranks: Ranks,
    progress: Progress,
) -> Path:
    """Make the store once a machine; it goes away in the end."""
    out.parent.mkdir(parents=True, exist_ok=True)
    made: str | None = None
    error: Exception | None = None
    if ranks.is_first_here:
        try:
            folder = stack.enter_context(partial_folder(out.parent, f".{out.name}.rows-"))
            write_rows(released, holdings, folder / "rows.f32", progress=progress)
            made = str(folder / "rows.f32")
        except (OSError, VesperError) as failure:
            error = failure
    said = ranks.gathered((made, None if error is None else str(error)))
    if error is not None:
        raise error
    failures = [why for _, why in said if why is not None]
    if failures:
        raise VesperError(f"another process failed: {failures[0]}")
    here = ranks.rank - ranks.local_rank
    path = said[here][0]
    assert path is not None
    return Path(path)
