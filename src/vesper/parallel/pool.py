"""Several threads on one kernel, in pieces that each takes when it is free.

A kernel takes piece after piece with `take` until there is none left and reports each with
`finish`. The caller works too, and waits only for pieces that somebody has begun: a mate that the
system has not woken (a busy machine, a forked process) costs nothing but its help. That is why this
is no `prange`: its threads wait for one another, and OpenMP by default waits spinning. Measured on
two busy cores, that made two threads 4 to 50 times slower than one (with OMP_WAIT_POLICY=PASSIVE
about as fast as one). Numba's other pool, workqueue, ends the process when two threads use it at
once.

Which thread does which piece is chance, so a result must not depend on it.

How many threads a compiled loop may have.

Numba counts its threads by starting its own pool, which no loop here uses (see above), and which
sets the number of threads of torch in the whole process. Then a run that built its graph first
would train with another number of threads than one that found it built, against OMP_NUM_THREADS,
and the last bits of some matrix products depend on it.
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
"""Counters of one run: pieces in all, taken, finished; threads that joined."""

TOTAL, NUM_TAKEN, NUM_FINISHED, NUM_JOINED = range(4)

POLLS, PAUSE = 200, 1e-4
"""Ask so often whether the last pieces are done (half a millisecond), then sleep in between."""


@cached_njit
def take(work: Work) -> int:
    """The next piece, or -1."""
    piece = add_atomically(work, NUM_TAKEN, 1)
    return piece if piece < work[TOTAL] else -1


@cached_njit
def finish(work: Work) -> None:
    """One more piece is done, and what it wrote can be read."""
    add_atomically(work, NUM_FINISHED, 1)


@cached_njit
def add(work: Work, counter: int, amount: int) -> int:
    """Add to a counter; returns the value before."""
    return add_atomically(work, counter, amount)


def run(kernel: Callable[..., None], *arguments: Any, num_pieces: int, num_threads: int) -> None:
    """Call kernel(work, seat, *arguments) on up to num_threads threads until all is done.

    Args:
        kernel: compiled with nogil=True; `thread`, from 0 to num_threads - 1, differs between
            threads and says which scratch is theirs.
        arguments: what the kernel gets after those.
        num_pieces: how many pieces there are to take.
        num_threads: most threads that may work, this one included.
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
        while add(work, NUM_FINISHED, 0) < num_pieces:  # a mate is inside its last piece
            sleep(0 if polls < POLLS else PAUSE)
            polls += 1
    finally:
        _HELPER_THREADS.release_task(help_out)


class _HelperThreads:
    """Threads that wait to be asked; started when first needed, they end with the process.

    A mate does what was asked for last, however late it wakes: what was asked before is done.
    """

    def __init__(self) -> None:
        self._wake_ups: SimpleQueue[None] = SimpleQueue()
        self._task: Callable[[], None] | None = None
        self._num_started = 0
        self._lock = Lock()

    def wake(self, task: Callable[[], None], count: int) -> None:
        """Have `count` mates call the task, as they wake."""
        if count < 1:
            return
        with self._lock:
            while self._num_started < count:
                Thread(target=self._serve, name="vesper-mate", daemon=True).start()
                self._num_started += 1
            self._task = task
            for _ in range(count - self._wake_ups.qsize()):
                self._wake_ups.put(None)

    def release_task(self, task: Callable[[], None]) -> None:
        """Let go of a finished task and of its arrays."""
        with self._lock:
            if self._task is task:
                self._task = None

    def _serve(self) -> None:
        while True:
            self._wake_ups.get()
            task = self._task
            if task is not None:
                with suppress(Exception):  # who asked runs the same kernel, and raises the same
                    task()
            del task  # and of its arrays, while waiting


_HELPER_THREADS = _HelperThreads()


def threads_allowed() -> int:
    """As many as Numba would use, without starting its pool.

    >>> threads_allowed() >= 1
    True
    """
    if parallel._is_initialized:  # somebody has started it, and may have asked for fewer
        return int(get_num_threads())
    return int(vars(config)["NUMBA_NUM_THREADS"])  # set by it while it is imported
