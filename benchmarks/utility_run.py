"""One cell of the utility table, through the very `simulate` code, in a worker with one thread."""

import hashlib
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any

from benchmarks.utility_cells import Cell, Line

from vesper.method.settings import Config
from vesper.run.config import load_config
from vesper.version import VERSION

PACKAGE = Path(__file__).parents[1] / "src" / "vesper"
MAKES_RESULTS = ("graph", "mechanism", "method", "model", "party", "privacy", "run")


class OutOfTime(BaseException):
    """Not an Exception: nothing on the way may take it for an error of its own."""


def config_of(cell: Cell, overrides: Mapping[str, Any]) -> Config:
    """Defaults of the method, with what is asked for; delta is the public one."""
    given = {"method": cell.method, "epsilon": cell.epsilon, "seed": cell.seed}
    return load_config(None, {**overrides, **given})


def settings_digest(config: Config) -> str:
    """Digest of all settings."""
    return config.contract[:16]


def code_digest() -> str:
    """Digest of the source that results come from."""
    digest = hashlib.sha256()
    for package in MAKES_RESULTS:
        for path in sorted((PACKAGE / package).rglob("*.py")):
            digest.update(path.relative_to(PACKAGE).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def ask_for_one_thread() -> None:
    """Let workers to be started have one thread for every library.

    A worker has imported the libraries before its initialiser runs, so its parent has to say it;
    two threads that wait for each other on a busy machine took up to seven times as long.
    """
    for library in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
        os.environ[f"{library}_NUM_THREADS"] = "1"


def start_worker() -> None:
    """Start a worker: Ctrl-C ends it at once and without words."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run_cell(
    cell: Cell, folder: Path, work: Path, overrides: Mapping[str, Any], limit: float, code: str
) -> Line:
    """Train, measure, and leave nothing behind."""
    from vesper.run.simulate import simulate

    config = config_of(cell, overrides)
    facts: dict[str, Any] = {
        "dataset": cell.dataset,
        "method": cell.method,
        "epsilon": cell.epsilon,
        "seed": cell.seed,
        "settings": settings_digest(config),
        "version": VERSION,
        "code": code,
    }
    out = Path(tempfile.mkdtemp(prefix="run-", dir=work))
    started = perf_counter()
    before = signal.signal(signal.SIGALRM, _out_of_time)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        result = simulate(folder, config, out)
    except OutOfTime:
        return Line(**facts, seconds=perf_counter() - started, limit=limit)
    except Exception as error:  # one bad cell does not end the night's work; its line says so
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        return Line(**facts, seconds=perf_counter() - started, failed=why)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        shutil.rmtree(out, ignore_errors=True)
    return Line(
        **facts,
        plan=result.privacy.plan,
        metric=result.metric,
        validation=result.validation,
        test=result.test,
        seconds=result.seconds,
        chosen_stage=result.chosen_stage,
    )


def _out_of_time(signum: int, frame: FrameType | None) -> None:
    raise OutOfTime
