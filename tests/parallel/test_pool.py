"""Every piece runs exactly once; the caller never waits for a helper that did not start."""

import os
import sys
import threading
from collections.abc import Callable
from threading import Thread
from time import sleep
from unittest.mock import patch

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

from vesper.parallel import pool
from vesper.parallel.pool import Work, finish, run, take


@njit(nogil=True)
def count_pieces(
    work: Work, thread: int, times: NDArray[np.int64], pieces_of: NDArray[np.int64]
) -> None:
    piece = take(work)
    while piece >= 0:
        times[piece] += 1
        pieces_of[thread] += 1
        finish(work)
        piece = take(work)


@pytest.mark.parametrize("num_threads", [1, 2, 7])
@pytest.mark.parametrize("num_pieces", [0, 1, 2, 500])
def test_every_piece_is_done_once(num_pieces: int, num_threads: int) -> None:
    times = np.zeros(num_pieces, dtype=np.int64)
    pieces_of = np.zeros(num_threads, dtype=np.int64)
    run(count_pieces, times, pieces_of, num_pieces=num_pieces, num_threads=num_threads)
    assert times.tolist() == [1] * num_pieces
    assert pieces_of.sum() == num_pieces


def test_helper_threads_work_next_to_the_caller() -> None:
    both_started = threading.Barrier(2)

    def meet(work: Work, thread: int, pieces_of: NDArray[np.int64]) -> None:
        piece = take(work)
        both_started.wait(timeout=60)
        pieces_of[thread] = piece
        finish(work)

    pieces_of = np.full(2, -1, dtype=np.int64)
    run(meet, pieces_of, num_pieces=2, num_threads=2)
    assert sorted(pieces_of.tolist()) == [0, 1]


def test_calls_from_several_threads_at_once() -> None:
    results = [np.zeros(300, dtype=np.int64) for _ in range(4)]

    def one(times: NDArray[np.int64]) -> None:
        for _ in range(10):
            pieces_of = np.zeros(3, dtype=np.int64)
            run(count_pieces, times, pieces_of, num_pieces=len(times), num_threads=3)

    callers = [threading.Thread(target=one, args=(times,)) for times in results]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    for times in results:
        assert times.tolist() == [10] * 300


def test_helpers_that_never_wake_are_not_waited_for() -> None:
    absent = pool._HelperThreads()
    absent._num_started = 99
    with patch.object(pool, "_HELPER_THREADS", absent):
        for _ in range(5):
            times = np.zeros(10, dtype=np.int64)
            pieces_of = np.zeros(3, dtype=np.int64)
            run(count_pieces, times, pieces_of, num_pieces=10, num_threads=3)
            assert pieces_of.tolist() == [10, 0, 0]
    assert absent._wake_ups.qsize() == 2  # woken once, not five times
    assert absent._task is None  # and holds no arrays


def test_a_helper_that_wakes_late_runs_the_latest_task_and_no_more_join_than_allowed() -> None:
    calls = list[str]()
    helpers = pool._HelperThreads()
    helpers._num_started = 99
    helpers.wake(lambda: calls.append("first"), 3)
    helpers.wake(lambda: calls.append("second"), 1)
    Thread(target=helpers._serve, daemon=True).start()
    while helpers._wake_ups.qsize():
        sleep(0.001)
    assert set(calls) == {"second"}

    # More helpers than threads allowed: the surplus returns at once.
    tasks = list[Callable[[], None]]()
    with patch.object(pool._HELPER_THREADS, "wake", lambda task, count: tasks.append(task)):
        threads = list[int]()

        def note(work: Work, thread: int) -> None:
            threads.append(thread)
            while take(work) >= 0:
                finish(work)

        run(note, num_pieces=4, num_threads=2)
    for _ in range(5):
        tasks[0]()
    assert threads == [0, 1]


@pytest.mark.skipif(sys.platform == "win32", reason="needs os.fork, which Windows does not have")
def test_a_forked_process_works_alone() -> None:
    times, pieces_of = np.zeros(10, dtype=np.int64), np.zeros(2, dtype=np.int64)
    run(count_pieces, times, pieces_of, num_pieces=10, num_threads=2)
    child = os.fork()
    if child == 0:
        run(count_pieces, times, pieces_of, num_pieces=10, num_threads=2)
        os._exit(0 if times.tolist() == [2] * 10 else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
