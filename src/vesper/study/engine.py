"""Cells on all cores: a line comes out as each is finished, whatever happens to its worker.

A cell that raises, takes too long, or takes its process down costs that cell alone. A worker is
renewed now and then, for what a cell leaves in memory adds up.
"""

import shutil
from collections.abc import Generator, Sequence
from itertools import count
from multiprocessing.connection import wait
from pathlib import Path

from vesper.partial import partial_folder
from vesper.study.cell import Line
from vesper.study.worker import Job, Worker, facts_of_job

CELLS_A_WORKER = 25


def run_jobs(
    jobs: Sequence[Job], *, workers: int, limit: float, work: Path
) -> Generator[Line, None, None]:
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
                    worker.give(_next_of(waiting, busy), room / str(next(names)))
                    busy.append(worker)
                for worker in _done(busy, limit):
                    busy.remove(worker)
                    line, is_alive = _line_of(worker, limit)
                    shutil.rmtree(worker.out, ignore_errors=True)
                    if is_alive and worker.cells < CELLS_A_WORKER:
                        idle.append(worker)
                    else:
                        worker.end()
                    yield line
        finally:
            for worker in (*busy, *idle):
                worker.end()


def _next_of(waiting: list[Job], busy: Sequence[Worker]) -> Job:
    """Take the next job that is no kin of one under way; the next one if all are."""
    under_way = {worker.job.kin for worker in busy if worker.job is not None}
    for k in reversed(range(len(waiting))):
        if waiting[k].kin not in under_way:
            return waiting.pop(k)
    return waiting.pop()


def _done(busy: Sequence[Worker], limit: float) -> list[Worker]:
    """Wait until some are finished, dead, or out of time."""
    soonest = min(limit - worker.seconds for worker in busy)
    ready = wait([worker.connection for worker in busy], timeout=max(soonest, 0.0))
    return [w for w in busy if w.connection in ready or w.seconds >= limit]


def _line_of(worker: Worker, limit: float) -> tuple[Line, bool]:
    """What became of a worker's cell, and whether the worker can go on."""
    job = worker.job
    assert job is not None  # it is busy
    facts = facts_of_job(job)
    if not worker.connection.poll():
        return Line(**facts, seconds=worker.seconds, limit=limit), False
    try:
        return worker.take(), True
    except (EOFError, ConnectionError):
        why = "the worker was killed, perhaps for want of memory; try fewer --workers"
        return Line(**facts, seconds=worker.seconds, failed=why), False
