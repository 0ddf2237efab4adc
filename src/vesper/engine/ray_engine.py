"""Workers on a Ray cluster: one that is there, or one on this machine, made for the occasion.

    RayEngine()                        a cluster on this machine, gone when the engine is closed
    RayEngine(address="10.0.0.1:6379") one that is there; "auto": the one this machine belongs to

A worker is an actor with one core. When it dies, Ray starts it again and repeats the calls it had
in hand, a few times each; what was shared is still there, the same as before.

Into a Ray cluster: one that is there, or one on this machine that is made for the occasion.

Nothing is reported to the makers of Ray, and a cluster made here answers only those who hold its
token, which lives as long as this process.
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
    """Give the module `ray`, connected.

    Args:
        address: of a cluster that is there, host:port or "auto"; None: make one here.
        num_cpus: cores of the one made here; None: those of this machine.

    Raises:
        InputError: Ray is not installed or in use, or no cluster is at the address.
    """
    if address is not None and "://" in address:
        raise InputError(
            f"ray address: expected host:port, or auto, of a cluster that this machine belongs to, "
            f"got {address}"
        )
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # its warning of the future
    if address is None:
        _require_token()
    try:
        import ray
    except ImportError:
        raise InputError(
            "engine ray: expected the package ray, found none; pip install 'vesper[ray]'"
        ) from None
    if ray.is_initialized():
        raise InputError("engine ray: this process is connected to Ray already; close that first")
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
    """Keep what this process does when it is told to end: Ray puts its own way in place of it."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


def _require_token() -> None:
    """Have a cluster that is made here refuse strangers; must be said before Ray is imported.

    The token lives in the environment of this process and its workers. Where the user has said how
    to do it, or has imported Ray, which by itself keeps a token in a file, that holds.
    """
    said = {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}
    if "ray" not in sys.modules and said.isdisjoint(os.environ):
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


CALLS_PER_WORKER = 2
"""Calls a worker has in hand: one to make, one to go on with."""

MAX_RETRIES = 3
"""How often a call is made again whose worker died; the worker is started again always."""

START_TIMEOUT = 120.0
"""Seconds for all workers to start: on a cluster that is busy they may never."""


class _Worker:
    """Lives in a process of its own, on one core."""

    def __init__(self) -> None:
        import numba

        numba.set_num_threads(1)

    def version(self) -> str:
        """Of this package, where the worker is."""
        return VERSION

    def call(self, function: Any, *arguments: Any) -> Any:
        """Make one call, on one thread also where it needs torch, which counts cores by itself."""
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)
        return function(*arguments)


class RayEngine:
    """Workers of a Ray cluster; close it, or use it as a context.

    Args:
        address: of a cluster that is there, host:port or "auto"; None: make one here.
        num_workers: how many to have; None: one a core of the cluster.

    Raises:
        InputError: Ray is not installed, no cluster is at the address, it has too few cores, or
            its machines have another version of this package.
    """

    def __init__(self, *, address: str | None = None, num_workers: int | None = None) -> None:
        if num_workers is not None and num_workers < 1:
            raise InputError(f"workers: expected at least 1, got {num_workers}")
        self._ray = connect_to_ray(address, num_cpus=num_workers)
        try:
            places = self._nodes_for(num_workers)
            self._workers = [self._start_worker(node) for node in places]
            self._refuse_other_versions()
        except BaseException:
            self.close()
            raise
        self._near = [node == self._own_node() for node in places]

    @property
    def num_workers(self) -> int:
        """How many there are."""
        return len(self._workers)

    def is_local(self, worker: int) -> bool:
        """Whether a worker is on this machine."""
        return self._near[worker]

    def share(self, value: Any) -> Any:
        """Put a value into the object store: one copy a machine, as long as it is referred to."""
        return self._ray.put(value)

    def results(self, calls: Iterable[Call]) -> Iterator[tuple[int, Any]]:
        """Make all calls; give results as they come, each with the number of its call."""
        waiting: list[deque[tuple[int, Call]]] = [deque() for _ in self._workers]
        for number, call in enumerate(calls):
            waiting[call.worker].append((number, call))
        running: dict[Any, tuple[int, int]] = {}  # number and worker of a call

        def give(worker: int) -> None:
            if waiting[worker]:
                number, call = waiting[worker].popleft()
                made = self._workers[worker].call.remote(call.function, *call.arguments)
                running[made] = number, worker

        for _ in range(CALLS_PER_WORKER):
            for worker in range(self.num_workers):
                give(worker)
        while running:
            done, _ = self._ray.wait(list(running), num_returns=1)
            number, worker = running.pop(done[0])
            give(worker)
            yield number, self._result_of(done[0])

    def close(self) -> None:
        """Let the workers go, and the cluster if it was made here."""
        self._ray.shutdown()

    def __enter__(self) -> "RayEngine":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _result_of(self, made: Any) -> Any:
        failures = self._ray.exceptions
        try:
            return self._ray.get(made)
        except failures.RayTaskError as error:
            raise error.cause from None
        except failures.RayError as error:
            why = str(error).splitlines()[0]
            raise VesperError(
                f"engine ray: a call was given up after {MAX_RETRIES} repeats ({why}); nothing of it "
                f"was handed on. Look after the cluster's machines, their memory above all"
            ) from None

    def _own_node(self) -> str:
        """The machine of this process."""
        node: str = self._ray.get_runtime_context().get_node_id()
        return node

    def _nodes_for(self, num_workers: int | None) -> list[str]:
        """A machine for each worker: cores of this one first, which see its files."""
        machines = [node for node in self._ray.nodes() if node["Alive"]]
        machines.sort(key=lambda node: node["NodeID"] != self._own_node())
        cores = [
            str(node["NodeID"])
            for node in machines
            for _ in range(int(node["Resources"].get("CPU", 0)))
        ]
        if num_workers is not None and num_workers > len(cores):
            raise InputError(
                f"workers: expected at most {len(cores)}, the cores there are, got {num_workers}"
            )
        return cores[:num_workers]

    def _start_worker(self, node: str) -> Any:
        """Start a worker; one that sees files here must not be started again elsewhere."""
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
        """Wait for all workers; refuse those with another version of this package."""
        asked = [worker.version.remote() for worker in self._workers]
        ready, late = self._ray.wait(asked, num_returns=len(asked), timeout=START_TIMEOUT)
        if late:
            raise InputError(
                f"workers: expected {len(asked)} to start within {START_TIMEOUT:g} s, got {len(ready)}; "
                f"the cluster is busy. Ask for fewer"
            )
        others = {self._result_of(each) for each in asked} - {VERSION}
        if others:
            raise InputError(
                f"engine ray: expected vesper {VERSION} on all machines, found {min(others)}"
            )
