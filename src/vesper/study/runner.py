"""Cells on all cores: every cell yields a result, whatever happens to its worker.

A cell that raises, takes too long or crashes its process affects no other cell. Workers are
replaced regularly, because what cells leave in memory adds up. `TimeEstimate` predicts how long the
remaining cells take.
"""

import shutil
from collections.abc import Generator, Iterable, Sequence
from itertools import count
from multiprocessing.connection import wait
from pathlib import Path

from vesper.files import partial_folder
from vesper.study.cell import Cell, CellResult
from vesper.study.worker import Job, Worker, facts_of_job

CELLS_PER_WORKER = 25


def run_jobs(
    jobs: Sequence[Job], *, workers: int, limit: float, work: Path
) -> Generator[CellResult, None, None]:
    """Measure all cells, roughly in this order, and yield results as they finish.

    Jobs of one family do not run at the same time while there are others. Closing the generator
    early ends what still runs.

    Args:
        jobs: cells to measure.
        workers: number of processes, with one thread each.
        limit: most seconds that a cell may take.
        work: folder in which every running cell gets a folder.
    """
    waiting, names = list(reversed(jobs)), count()
    busy: list[Worker] = []
    idle: list[Worker] = []
    with partial_folder(work, ".cells-") as cell_folders:
        try:
            while waiting or busy:
                while waiting and len(busy) < workers:
                    worker = idle.pop() if idle else Worker()
                    worker.assign(_next_of(waiting, busy), cell_folders / str(next(names)))
                    busy.append(worker)
                for worker in _done(busy, limit):
                    busy.remove(worker)
                    line, is_alive = _line_of(worker, limit)
                    shutil.rmtree(worker.out, ignore_errors=True)
                    if is_alive and worker.cells < CELLS_PER_WORKER:
                        idle.append(worker)
                    else:
                        worker.terminate()
                    yield line
        finally:
            for worker in (*busy, *idle):
                worker.terminate()


def _next_of(waiting: list[Job], busy: Sequence[Worker]) -> Job:
    """Take the next job whose family is not running, or the next job if all families are."""
    running = {worker.job.family for worker in busy if worker.job is not None}
    for k in reversed(range(len(waiting))):
        if waiting[k].family not in running:
            return waiting.pop(k)
    return waiting.pop()


def _done(busy: Sequence[Worker], limit: float) -> list[Worker]:
    """Wait until some workers are finished, dead or out of time."""
    soonest = min(limit - worker.seconds for worker in busy)
    ready = wait([worker.connection for worker in busy], timeout=max(soonest, 0.0))
    return [w for w in busy if w.connection in ready or w.seconds >= limit]


def _line_of(worker: Worker, limit: float) -> tuple[CellResult, bool]:
    """Return the result of a worker's cell, and whether the worker can take another one."""
    job = worker.job
    assert job is not None  # it is busy
    facts = facts_of_job(job)
    if not worker.connection.poll():
        return CellResult(**facts, seconds=worker.seconds, limit=limit), False
    try:
        return worker.receive_result(), True
    except (EOFError, ConnectionError):
        why = "the worker was killed, perhaps because memory ran out; try fewer --workers"
        return CellResult(**facts, seconds=worker.seconds, failed=why), False


class TimeEstimate:
    """Estimate of the time of cells, from others of their data set and method, data set, or any."""

    def __init__(self, lines: Iterable[CellResult]) -> None:
        self._lines = list(lines)
        self._spent = 0.0

    def add_result(self, line: CellResult) -> None:
        """Add the result of a finished cell."""
        self._lines.append(line)
        self._spent += line.seconds

    def seconds_of(self, cell: Cell) -> float:
        """Estimate the seconds that one worker needs for a cell."""
        of_dataset = [line for line in self._lines if line.dataset == cell.dataset]
        nearest = [line for line in of_dataset if line.method == cell.method]
        nearest = nearest or of_dataset or self._lines
        return sum(line.seconds for line in nearest) / max(len(nearest), 1)

    def left(self, cells: Iterable[Cell], *, elapsed: float) -> float:
        """Estimate the remaining wall-clock seconds, at the rate of the `elapsed` ones."""
        share = elapsed / max(self._spent, 1e-9)
        return share * sum(self.seconds_of(cell) for cell in cells)


def format_duration(seconds: float) -> str:
    """Format a duration in a suitable unit.

    >>> format_duration(45), format_duration(600), format_duration(10_000)
    ('45 s', '10 min', '2.8 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
