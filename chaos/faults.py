"""Faults inside a process: something happens before, after or within the n-th call of a kind.

| kind | calls |
| --- | --- |
| fsync, replace, link, unlink | of `os`, which `pathlib` and `shutil` use as well |
| write | `os.pwritev`: frames of the log; within: half of the bytes |
| sql | statements on any SQLite connection |
| send, receive | frames on a connection to the peer |

| action | what happens |
| --- | --- |
| kill | SIGKILL to this process |
| power | the same, and the harness takes back what was not synced |
| full | the call fails with ENOSPC, and so does every write from then on, by the shim |
| interrupt | SIGINT to this process, as Ctrl-C sends it |
| clock | the clock jumps by `seconds` |
"""

import ctypes
import errno
import os
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

R = TypeVar("R")
Kind = Literal["fsync", "replace", "link", "unlink", "write", "sql", "send", "receive"]
When = Literal["before", "after", "within"]
Action = Literal["kill", "power", "full", "interrupt", "clock"]


@dataclass(frozen=True)
class Fault:
    """One fault of one process."""

    kind: Kind
    when: When
    number: int
    """1 for the first call."""
    action: Action
    seconds: float = 0.0
    """Of a jump of the clock."""

    def __str__(self) -> str:
        what = f"clock {self.seconds / 86_400:+.0f} d" if self.action == "clock" else self.action
        return f"{what} {self.when} {self.kind} {self.number}"


class Injector:
    """Counts calls, and lets a fault happen."""

    def __init__(self, fault: Fault | None, *, fired: Callable[[], None]) -> None:
        self.counts: Counter[str] = Counter()
        self._fault, self._fired, self._lock = fault, fired, threading.Lock()

    def call(self, kind: str, act: Callable[[], R], half: Callable[[], object] = lambda: None) -> R:
        """Make a call of a kind; `half` does half of it."""
        with self._lock:
            self.counts[kind] += 1
            is_due = self._fault is not None and (
                (self._fault.kind, self._fault.number) == (kind, self.counts[kind])
            )
        if not is_due:
            return act()
        assert self._fault is not None
        if self._fault.when == "after":
            result = act()
            self._happen(self._fault)
            return result
        if self._fault.when == "within":
            half()
        self._happen(self._fault)
        return act()

    def _happen(self, fault: Fault) -> None:
        self._fired()
        if fault.action in ("kill", "power"):
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
        elif fault.action == "full":
            fill_disk()
            if fault.when != "after":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        elif fault.action == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
        else:
            shim().chaos_set_clock(ctypes.c_double(fault.seconds))


def arm(injector: Injector) -> None:
    """Route calls of all kinds through the injector, for the rest of this process."""
    for kind, names in {
        "fsync": ("fsync",),
        "replace": ("replace", "rename"),
        "link": ("link",),
        "unlink": ("unlink",),
    }.items():
        for name in names:
            _route(injector, kind, os, name)
    _route_writes(injector)
    _route_statements(injector)
    from vesper.transport.stream import StreamChannel

    _route(injector, "send", StreamChannel, "send")
    _route(injector, "receive", StreamChannel, "receive")


def _route(injector: Injector, kind: str, owner: Any, name: str) -> None:
    original = getattr(owner, name)

    def routed(*values: Any, **named: Any) -> Any:
        return injector.call(kind, lambda: original(*values, **named))

    setattr(owner, name, routed)


def _route_writes(injector: Injector) -> None:
    original = os.pwritev

    def routed(file: int, parts: Any, offset: int, *flags: int) -> int:
        def half() -> None:
            content = b"".join(bytes(part) for part in parts)
            os.pwrite(file, content[: len(content) // 2], offset)

        return injector.call("write", lambda: original(file, parts, offset, *flags), half)

    os.pwritev = routed


def _route_statements(injector: Injector) -> None:
    class Connection(sqlite3.Connection):
        def execute(self, *values: Any) -> sqlite3.Cursor:
            return injector.call("sql", lambda: super(Connection, self).execute(*values))

    original: Any = sqlite3.connect

    def connect(*values: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = original(*values, **{"factory": Connection} | named)
        return connection

    module: Any = sqlite3
    module.connect = connect


def shim() -> Any:
    """Return the preloaded library (`shim.c`), or this program where it is not loaded."""
    return ctypes.CDLL(None)


def has_shim() -> bool:
    """Whether the library is loaded."""
    return hasattr(shim(), "chaos_arm")


def fill_disk() -> None:
    """Let all writes fail from now on, below the folder that the shim watches."""
    if has_shim():
        shim().chaos_fill()
