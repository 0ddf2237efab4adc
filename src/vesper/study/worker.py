"""Worker of a study: a process with one thread that measures one cell after another.

It ignores Ctrl-C, because its parent ends it, and exits when its parent is gone, even if killed.
Every result carries a digest of the source that produced it.
"""

import hashlib
import multiprocessing
import os
import platform
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

import vesper
from vesper.method.settings import Config
from vesper.study.cell import Cell, CellResult, settings_digest
from vesper.study.measure import Measure
from vesper.version import VERSION

PACKAGE = Path(vesper.__file__).parent
MAKES_RESULTS = (
    "graph",
    "mechanism",
    "method",
    "model",
    "party",
    "privacy",
    "session",
    "simulation",
)


@cache
def code_digest() -> str:
    """Digest of the source that results depend on."""
    digest = hashlib.sha256()
    for package in MAKES_RESULTS:
        for path in sorted((PACKAGE / package).rglob("[!.]*.py")):
            digest.update(path.relative_to(PACKAGE).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


KEEP_FREED_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 28),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
    "MALLOC_ARENA_MAX": "1",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}
"""Environment of glibc: freed blocks below 256 MiB stay with the process, up to 4 GiB in all, in
large pages. Threads share one heap, because the heaps that they would have are given back."""

KEEPS_MEMORY_FROM = (2, 36)
"""First glibc version to use it with.

Before about 2.35 only the second variable takes effect, which makes everything slower.
"""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A cell with everything that is needed to measure it."""

    cell: Cell
    config: Config
    folder: Path
    """Folder with data/ and label/."""
    measure: str
    measure_function: Measure

    @property
    def family(self) -> tuple[Cell, Path]:
        """Equal for jobs that differ in epsilon only; the first saves work for the others."""
        return replace(self.cell, epsilon=0.0), self.folder


def measure_job(job: Job, out: Path) -> CellResult:
    """Measure a cell; an error becomes part of its result."""
    facts, started = facts_of_job(job), perf_counter()
    try:
        measured = job.measure_function(job.config, job.folder, out)
    except Exception as error:  # one bad cell must not end the whole study
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        return CellResult(**facts, seconds=perf_counter() - started, failed=why)
    return CellResult(
        **facts,
        plan=measured.plan,
        metric=measured.metric,
        validation=measured.validation,
        test=measured.test,
        histogram=measured.histogram,
        chosen_stage=measured.chosen_stage,
        seconds=perf_counter() - started,
    )


def facts_of_job(job: Job) -> dict[str, Any]:
    """Fields of a cell's result that are known before anything is measured."""
    cell, privacy, run = job.cell, job.config.privacy, job.config.run
    return {
        "dataset": cell.dataset,
        "method": cell.method,
        "epsilon": cell.epsilon,
        "seed": cell.seed,
        "series": cell.series,
        "settings": settings_digest(job.config),
        "version": VERSION,
        "code": code_digest(),
        "measure": job.measure,
        "decoder": run.decoder,
        "max_degree": privacy.max_degree,
        "min_degree": privacy.min_degree,
        "batch_size": run.batch_size,
        "hops": privacy.hops,
    }


class Worker:
    """A worker process as its parent sees it; `connection` is readable when its cell is done."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_worker_loop, args=(theirs,), daemon=True)
        with _worker_environment(), _without_ctrl_c():
            self._process.start()
        theirs.close()
        self.cells = 0
        """Number of cells assigned so far."""
        self.job: Job | None = None
        self.out = Path()
        self._assigned_at = 0.0

    @property
    def seconds(self) -> float:
        """Seconds since its cell was assigned."""
        return monotonic() - self._assigned_at

    @property
    def process_id(self) -> int | None:
        """Number of the process."""
        return self._process.pid

    def assign(self, job: Job, out: Path) -> None:
        """Start measuring a cell."""
        self.job, self.out, self._assigned_at = job, out, monotonic()
        self.cells += 1
        with suppress(ConnectionError):  # it died while idle; waiting for its result will show it
            self.connection.send((job, out))

    def receive_result(self) -> CellResult:
        """Return the result of its cell.

        Raises:
            EOFError: the process has died.
        """
        line: CellResult = self.connection.recv()
        self.job = None
        return line

    def terminate(self) -> None:
        """Kill the process immediately."""
        self._process.kill()
        self._process.join()
        self.connection.close()


@contextmanager
def _worker_environment() -> Iterator[None]:
    """Make processes that are started here use one thread per library and keep memory they free.

    A worker imports the libraries before it runs any of our code, so its parent has to set the
    environment; two threads that wait for each other on a busy machine took up to seven times as
    long. Memory that is returned to the system after every training step is fetched again for the
    next one, page by page, which took a quarter of the time of sampled methods; see
    docs/decisions/0014.
    """
    before = dict(os.environ)
    if keeps_memory(*platform.libc_ver()):
        for name, value in KEEP_FREED_MEMORY.items():
            os.environ.setdefault(name, value)
    for library in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Make processes that are started here never receive Ctrl-C, which ends them with their parent.

    A terminal sends it to all of them. Until a worker has imported its libraries, it would print a
    traceback. Here the signal waits for the end of the block.
    """
    resource_tracker.ensure_running()  # starting it would receive the signal again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def keeps_memory(library: str, version: str) -> bool:
    """Whether a C library can be configured to keep freed memory.

    >>> keeps_memory("glibc", "2.36"), keeps_memory("glibc", "2.9"), keeps_memory("", "")
    (True, False, False)
    """
    numbers = tuple(int(part) for part in version.split(".") if part.isdigit())
    return library == "glibc" and numbers >= KEEPS_MEMORY_FROM


def _worker_loop(connection: Connection) -> None:
    """Measure jobs from the connection until it is closed."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            job, out = connection.recv()
            connection.send(measure_job(job, out))
        except (EOFError, BrokenPipeError):
            return


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
