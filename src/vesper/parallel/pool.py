"""Thread pool for compiled loops: each thread takes the next piece of a kernel when it is free.

A kernel takes one piece after another with `take` until none is left, and reports each with
`finish`. The calling thread works too, and waits only for pieces that another thread has started: a
helper thread that the system has not woken (busy machine, forked process) costs nothing but its
help. That is why this is not `prange`: its threads wait for one another, and OpenMP spins while it
waits. Measured on two busy cores, that made two threads 4 to 50 times slower than one (with
OMP_WAIT_POLICY=PASSIVE about as fast as one). Numba's other pool, workqueue, ends the process when
two threads use it at once.

Which thread runs which piece is arbitrary, so a result must not depend on it.

`threads_allowed` says how many threads a loop may use. Numba counts its threads by starting a pool
of its own, which no loop here uses, and which sets the number of threads of torch for the whole
process. A run that built its graph first would then train with another number of threads than a run
that found the graph built, in spite of OMP_NUM_THREADS, and the last bits of some matrix products
depend on that number.
"""

from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from time import sleep
from typing import Any

import numpy as np
from numba import get_num_threads
from numba.core import config
from numba.np.ufunc import parallel
from numpy.typing import NDArray

from vesper.parallel.compile_cache import cached_njit
from vesper.parallel.intrinsics import add_atomically

Work = NDArray[np.int64]
"""Counters of one run: total pieces, pieces taken, pieces finished, threads that joined."""

TOTAL, NUM_TAKEN, NUM_FINISHED, NUM_JOINED = range(4)

POLLS, PAUSE = 200, 1e-4
"""Polls for the last pieces without sleeping (half a millisecond); then seconds between polls."""


@cached_njit
def take(work: Work) -> int:
    """Take the next piece; -1 when none is left."""
    piece = add_atomically(work, NUM_TAKEN, 1)
    return piece if piece < work[TOTAL] else -1


@cached_njit
def finish(work: Work) -> None:
    """Report a piece as done; what it wrote is visible to other threads."""
    add_atomically(work, NUM_FINISHED, 1)


@cached_njit
def add(work: Work, counter: int, amount: int) -> int:
    """Add to a counter; returns the value before."""
    return add_atomically(work, counter, amount)


def run(kernel: Callable[..., None], *arguments: Any, num_pieces: int, num_threads: int) -> None:
    """Call kernel(work, thread, *arguments) on up to num_threads threads until all pieces are done.

    Args:
        kernel: compiled with nogil=True; `thread`, from 0 to num_threads - 1, is different in each
            thread and selects its scratch memory.
        arguments: passed to the kernel after those two.
        num_pieces: number of pieces.
        num_threads: maximum number of threads, including this one.
    """
    work = np.array([num_pieces, 0, 0, 1], dtype=np.int64)

    def help_out() -> None:
        thread = add(work, NUM_JOINED, 1)
        if thread < num_threads:
            kernel(work, thread, *arguments)

    _HELPER_THREADS.wake(help_out, min(num_threads, num_pieces) - 1)
    try:
        kernel(work, 0, *arguments)
        polls = 0
        while add(work, NUM_FINISHED, 0) < num_pieces:  # a helper is inside its last piece
            sleep(0 if polls < POLLS else PAUSE)
            polls += 1
    finally:
        _HELPER_THREADS.release_task(help_out)


class _HelperThreads:
    """Threads that wait for work; started when first needed, they end with the process.

    A thread runs the latest task, however late it wakes: all earlier tasks are done by then.
    """

    def __init__(self) -> None:
        self._wake_ups: SimpleQueue[None] = SimpleQueue()
        self._task: Callable[[], None] | None = None
        self._num_started = 0
        self._lock = Lock()

    def wake(self, task: Callable[[], None], count: int) -> None:
        """Make `count` threads call the task as they wake."""
        if count < 1:
            return
        with self._lock:
            while self._num_started < count:
                Thread(target=self._serve, name="vesper-helper", daemon=True).start()
                self._num_started += 1
            self._task = task
            for _ in range(count - self._wake_ups.qsize()):
                self._wake_ups.put(None)

    def release_task(self, task: Callable[[], None]) -> None:
        """Drop a finished task and its arrays."""
        with self._lock:
            if self._task is task:
                self._task = None

    def _serve(self) -> None:
        while True:
            self._wake_ups.get()
            task = self._task
            if task is not None:
                with suppress(Exception):  # the caller runs the same kernel and raises the same
                    task()
            del task  # do not hold its arrays while waiting


_HELPER_THREADS = _HelperThreads()


def threads_allowed() -> int:
    """Number of threads that Numba would use, found without starting its pool.

    >>> threads_allowed() >= 1
    True
    """
    if parallel._is_initialized:  # already started, perhaps with fewer threads
        return int(get_num_threads())
    return int(vars(config)["NUMBA_NUM_THREADS"])  # set by Numba at import
