"""Into a Ray cluster: one that is there, or one on this machine that is made for the occasion.

Nothing is reported to the makers of Ray, and a cluster made here answers only those who hold its
token, which lives as long as this process.
"""

import os
import secrets
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vesper.errors import InputError


def connect(address: str | None, *, num_cpus: int | None) -> Any:
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
        _ask_for_a_token()
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
        with _own_signals():
            ray.init(address="local", num_cpus=num_cpus, include_dashboard=False, **quietly)
        return ray
    try:
        ray.init(address=address, **quietly)
    except ConnectionError as error:
        why = str(error).splitlines()[0]
        raise InputError(f"ray address: no cluster at {address} ({why})") from None
    return ray


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep what this process does when it is told to end: Ray puts its own way in place of it."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


def _ask_for_a_token() -> None:
    """Have a cluster that is made here refuse strangers; must be said before Ray is imported.

    The token lives in the environment of this process and its workers. Where the user has said how
    to do it, or has imported Ray, which by itself keeps a token in a file, that holds.
    """
    said = {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}
    if "ray" not in sys.modules and said.isdisjoint(os.environ):
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
