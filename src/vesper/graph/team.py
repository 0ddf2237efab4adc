"""Several threads on one kernel, in pieces that each takes when it is free.

A kernel gets a `Work` first: it takes piece after piece with `take` until there is none left, and
reports each with `finish`. The caller works too, and waits only for pieces that somebody has begun:
a thread that the system never woke (a busy machine, a forked process) costs nothing but its help.
That is why this is no `prange`: its threads wait for one another, with OpenMP by spinning, which on
a machine that does something else besides made two threads many times slower than one; and Numba's
other pool ends the process when two threads use it at once.

Which thread does which piece is chance, so a piece's result must not depend on it.
"""

from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from time import sleep
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from vesper.graph.intrinsics import add_atomically

Work = NDArray[np.int64]
"""Counters of one run: pieces in all, taken, finished, and threads that joined."""

IN_ALL, TAKEN, FINISHED, JOINED = range(4)

POLLS, PAUSE = 200, 1e-4
"""Ask so often whether the last pieces are done (half a millisecond), then sleep in between."""


@njit(cache=True, nogil=True)
def join(work: Work) -> int:
    """This thread's place in the team, from 0: which scratch is its own."""
    return add_atomically(work, JOINED, 1)


@njit(cache=True, nogil=True)
def take(work: Work) -> int:
    """The next piece, or -1."""
    piece = add_atomically(work, TAKEN, 1)
    return piece if piece < work[IN_ALL] else -1


@njit(cache=True, nogil=True)
def finish(work: Work) -> None:
    """One more piece is done, and what it wrote can be read."""
    add_atomically(work, FINISHED, 1)


@njit(cache=True, nogil=True)
def num_finished(work: Work) -> int:
    """Pieces done so far."""
    return add_atomically(work, FINISHED, 0)


def run(kernel: Callable[..., None], *arguments: Any, num_pieces: int, num_threads: int) -> None:
    """Call kernel(work, *arguments) on up to num_threads threads until all pieces are done.

    Args:
        kernel: compiled with nogil=True.
        arguments: what it gets after its work.
        num_pieces: how many pieces there are to take.
        num_threads: most threads that may join, this one included.
    """
    work = np.array([num_pieces, 0, 0, 0], dtype=np.int64)
    _MATES.call(min(num_threads, num_pieces) - 1, kernel, (work, *arguments))
    kernel(work, *arguments)
    polls = 0
    while num_finished(work) < num_pieces:  # a mate is inside its last piece
        sleep(0 if polls < POLLS else PAUSE)
        polls += 1


class _Mates:
    """Threads that wait for calls; started when first asked for, they end with the process."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]]] = SimpleQueue()
        self._started = 0
        self._starting = Lock()

    def call(self, count: int, kernel: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Ask `count` mates to run the kernel, less those that have not taken up earlier calls."""
        with self._starting:
            while self._started < count:
                Thread(target=self._serve, name="vesper-mate", daemon=True).start()
                self._started += 1
        for _ in range(count - self._calls.qsize()):
            self._calls.put((kernel, arguments))

    def _serve(self) -> None:
        while True:
            kernel, arguments = self._calls.get()
            kernel(*arguments)
            del kernel, arguments  # let go of the arrays while waiting


_MATES = _Mates()
