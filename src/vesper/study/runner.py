"""Cells on all cores: a line comes out as each is finished, whatever happens to its worker.

A cell that raises, takes too long, or takes its process down costs that cell alone. A worker is
renewed now and then, for what a cell leaves in memory adds up.

How long a study will still take.
"""

import shutil
from collections.abc import Generator, Iterable, Sequence
from itertools import count
from multiprocessing.connection import wait
from pathlib import Path

from vesper.files import partial_folder
from vesper.study.cell import Cell, CellResult
from vesper.study.worker import Job, Worker, facts_of_job

CELLS_A_WORKER = 25


def run_jobs(
    jobs: Sequence[Job], *, workers: int, limit: float, work: Path
) -> Generator[CellResult, None, None]:
    """Measure all, about in this order, and give their lines in the order in which they end.

    Kin are not measured at the same time as long as there is something else to do. Closed
    before its end, it ends what still runs.

    Args:
        jobs: what to measure.
        workers: how many processes, of one thread each.
        limit: seconds that a cell may take.
        work: folder in which cells get folders of their own while they run.
    """
    waiting, names = list(reversed(jobs)), count()
    busy: list[Worker] = []
    idle: list[Worker] = []
    with partial_folder(work, ".cells-") as room:
        try:
            while waiting or busy:
                while waiting and len(busy) < workers:
                    worker = idle.pop() if idle else Worker()
                    worker.assign(_next_of(waiting, busy), room / str(next(names)))
                    busy.append(worker)
                for worker in _done(busy, limit):
                    busy.remove(worker)
                    line, is_alive = _line_of(worker, limit)
                    shutil.rmtree(worker.out, ignore_errors=True)
                    if is_alive and worker.cells < CELLS_A_WORKER:
                        idle.append(worker)
                    else:
                        worker.terminate()
                    yield line
        finally:
            for worker in (*busy, *idle):
                worker.terminate()


def _next_of(waiting: list[Job], busy: Sequence[Worker]) -> Job:
    """Take the next job that is no kin of one under way; the next one if all are."""
    under_way = {worker.job.family for worker in busy if worker.job is not None}
    for k in reversed(range(len(waiting))):
        if waiting[k].family not in under_way:
            return waiting.pop(k)
    return waiting.pop()


def _done(busy: Sequence[Worker], limit: float) -> list[Worker]:
    """Wait until some are finished, dead, or out of time."""
    soonest = min(limit - worker.seconds for worker in busy)
    ready = wait([worker.connection for worker in busy], timeout=max(soonest, 0.0))
    return [w for w in busy if w.connection in ready or w.seconds >= limit]


def _line_of(worker: Worker, limit: float) -> tuple[CellResult, bool]:
    """What became of a worker's cell, and whether the worker can go on."""
    job = worker.job
    assert job is not None  # it is busy
    facts = facts_of_job(job)
    if not worker.connection.poll():
        return CellResult(**facts, seconds=worker.seconds, limit=limit), False
    try:
        return worker.receive_result(), True
    except (EOFError, ConnectionError):
        why = "the worker was killed, perhaps for want of memory; try fewer --workers"
        return CellResult(**facts, seconds=worker.seconds, failed=why), False


class TimeEstimate:
    """How long a cell will take: as others of its set and method, or of its set, or any."""

    def __init__(self, lines: Iterable[CellResult]) -> None:
        self._lines = list(lines)
        self._spent = 0.0

    def add_result(self, line: CellResult) -> None:
        """Take note of a cell that is finished."""
        self._lines.append(line)
        self._spent += line.seconds

    def seconds_of(self, cell: Cell) -> float:
        """Seconds of one worker for a cell."""
        like = [line for line in self._lines if line.dataset == cell.dataset]
        nearest = [line for line in like if line.method == cell.method] or like or self._lines
        return sum(line.seconds for line in nearest) / max(len(nearest), 1)

    def left(self, cells: Iterable[Cell], *, elapsed: float) -> float:
        """Seconds by the clock, if it goes on as in the `elapsed` ones."""
        share = elapsed / max(self._spent, 1e-9)
        return share * sum(self.seconds_of(cell) for cell in cells)


def format_duration(seconds: float) -> str:
    """Say a time in the unit that fits.

    >>> format_duration(45), format_duration(600), format_duration(10_000)
    ('45 s', '10 min', '2.8 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
