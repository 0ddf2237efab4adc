"""Workers on a Ray cluster: one that is running, or a temporary one on this machine.

    RayEngine()                        a cluster on this machine, gone when the engine is closed
    RayEngine(address="10.0.0.1:6379") a running cluster; "auto": the one this machine belongs to

A worker is an actor with one core. When it dies, Ray starts it again and repeats its unfinished
calls, a few times each; shared values are unaffected.

Usage reports to the makers of Ray are off, and a cluster that is started here only answers clients
with its token, which exists only as long as this process.
"""

import os
import secrets
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from vesper.engine.engine import Call
from vesper.errors import InputError, VesperError
from vesper.version import VERSION


def connect_to_ray(address: str | None, *, num_cpus: int | None) -> Any:
    """Connect to a cluster and return the module `ray`.

    Args:
        address: host:port or "auto" for a running cluster; None starts one on this machine.
        num_cpus: number of cores of a cluster started here; None for all cores of this machine.

    Raises:
        InputError: Ray is not installed, this process uses it already, or there is no cluster at
            the address.
    """
    if address is not None and "://" in address:
        raise InputError(
            f"ray address: expected host:port, or auto, of a cluster that this machine belongs to, "
            f"got {address}"
        )
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # silences a FutureWarning
    if address is None:
        _require_token()
    try:
        import ray
    except ImportError:
        raise InputError(
            "engine ray: expected the package ray, which is not installed; run "
            "pip install 'vesper[ray]'"
        ) from None
    if ray.is_initialized():
        raise InputError(
            "engine ray: this process is already connected to Ray; close that connection first"
        )
    quietly: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        with _keep_sigterm_handler():
            ray.init(address="local", num_cpus=num_cpus, include_dashboard=False, **quietly)
        return ray
    try:
        ray.init(address=address, **quietly)
    except ConnectionError as error:
        why = str(error).splitlines()[0]
        raise InputError(f"ray address: no cluster at {address} ({why})") from None
    return ray


@contextmanager
def _keep_sigterm_handler() -> Iterator[None]:
    """Restore this process's SIGTERM handler, which Ray replaces by its own."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


def _require_token() -> None:
    """Make a cluster that is started here require a token; call this before Ray is imported.

    The token exists in the environment of this process and its workers. Settings of the user take
    precedence, and so does a Ray that is already imported, which stores a token in a file.
    """
    settings = {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}
    if "ray" not in sys.modules and settings.isdisjoint(os.environ):
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


CALLS_PER_WORKER = 2
"""Calls submitted to a worker at a time: one that runs and one that is next."""

MAX_RETRIES = 3
"""How often a call is repeated after its worker died; the worker itself is always restarted."""

START_TIMEOUT = 120.0
"""Seconds to wait for all workers to start; on a busy cluster some may never do."""


class _Worker:
    """A worker: runs in its own process, on one core."""

    def __init__(self) -> None:
        import numba

        numba.set_num_threads(1)

    def version(self) -> str:
        """Version of this package on the worker's machine."""
        return VERSION

    def call(self, function: Any, *arguments: Any) -> Any:
        """Make one call on one thread, in torch too, which otherwise uses a thread per core."""
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)
        return function(*arguments)


class RayEngine:
    """Engine on the workers of a Ray cluster; close it, or use it as a context manager.

    Args:
        address: host:port or "auto" for a running cluster; None starts one on this machine.
        num_workers: number of workers; None for one per core of the cluster.

    Raises:
        InputError: Ray is not installed, there is no cluster at the address, it has too few cores,
            or its machines have another version of this package.
    """

    def __init__(self, *, address: str | None = None, num_workers: int | None = None) -> None:
        if num_workers is not None and num_workers < 1:
            raise InputError(f"workers: expected at least 1, got {num_workers}")
        self._ray = connect_to_ray(address, num_cpus=num_workers)
        try:
            nodes = self._nodes_for(num_workers)
            self._workers = [self._start_worker(node) for node in nodes]
            self._refuse_other_versions()
        except BaseException:
            self.close()
            raise
        self._is_local = [node == self._own_node() for node in nodes]

    @property
    def num_workers(self) -> int:
        """Number of workers."""
        return len(self._workers)

    def is_local(self, worker: int) -> bool:
        """Whether a worker is on this machine."""
        return self._is_local[worker]

    def share(self, value: Any) -> Any:
        """Put a value into the object store: one copy per machine, as long as it is referenced."""
        return self._ray.put(value)

    def results(self, calls: Iterable[Call]) -> Iterator[tuple[int, Any]]:
        """Make all calls; yield results as they arrive, each with the number of its call."""
        waiting: list[deque[tuple[int, Call]]] = [deque() for _ in self._workers]
        for number, call in enumerate(calls):
            waiting[call.worker].append((number, call))
        running: dict[Any, tuple[int, int]] = {}  # number and worker of a call

        def submit_next(worker: int) -> None:
            if waiting[worker]:
                number, call = waiting[worker].popleft()
                reference = self._workers[worker].call.remote(call.function, *call.arguments)
                running[reference] = number, worker

        for _ in range(CALLS_PER_WORKER):
            for worker in range(self.num_workers):
                submit_next(worker)
        while running:
            done, _ = self._ray.wait(list(running), num_returns=1)
            number, worker = running.pop(done[0])
            submit_next(worker)
            yield number, self._result_of(done[0])

    def close(self) -> None:
        """Release the workers; stop the cluster if it was started here."""
        self._ray.shutdown()

    def __enter__(self) -> "RayEngine":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _result_of(self, reference: Any) -> Any:
        failures = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except failures.RayTaskError as error:
            raise error.cause from None
        except failures.RayError as error:
            why = str(error).splitlines()[0]
            raise VesperError(
                f"engine ray: a call was given up after {MAX_RETRIES} repeats ({why}); none of its "
                f"result was used. Check the cluster's machines, their memory above all"
            ) from None

    def _own_node(self) -> str:
        """Ray's id of this machine."""
        node: str = self._ray.get_runtime_context().get_node_id()
        return node

    def _nodes_for(self, num_workers: int | None) -> list[str]:
        """Machine of each worker: cores of this machine first, because they see its files."""
        machines = [node for node in self._ray.nodes() if node["Alive"]]
        machines.sort(key=lambda node: node["NodeID"] != self._own_node())
        cores = [
            str(node["NodeID"])
            for node in machines
            for _ in range(int(node["Resources"].get("CPU", 0)))
        ]
        if num_workers is not None and num_workers > len(cores):
            raise InputError(
                f"workers: expected at most {len(cores)}, one per core, got {num_workers}"
            )
        return cores[:num_workers]

    def _start_worker(self, node: str) -> Any:
        """Start a worker; one that sees files of this machine must not be restarted elsewhere."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return (
            self._ray.remote(_Worker)
            .options(
                num_cpus=1,
                max_restarts=-1,
                max_task_retries=MAX_RETRIES,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, node != self._own_node()),
            )
            .remote()
        )

    def _refuse_other_versions(self) -> None:
        """Wait for all workers to start; refuse other versions of this package."""
        replies = [worker.version.remote() for worker in self._workers]
        ready, late = self._ray.wait(replies, num_returns=len(replies), timeout=START_TIMEOUT)
        if late:
            raise InputError(
                f"workers: expected {len(replies)} to start within {START_TIMEOUT:g} s, got "
                f"{len(ready)}; the cluster is busy. Use fewer"
            )
        others = {self._result_of(each) for each in replies} - {VERSION}
        if others:
            raise InputError(
                f"engine ray: expected vesper {VERSION} on all machines, found {min(others)}"
            )
