"""Processes of `vesper` that a trial starts, waits for, kills and starts again."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from chaos.faults import Fault

HERE = Path(__file__).parent
THREADS = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "GRPC_ENABLE_FORK_SUPPORT": "0"}


@dataclass
class Process:
    """One process of `vesper`."""

    pid: int
    log: Path
    fired: Path
    """Exists once the fault of the process has happened."""
    code: int | None = None
    megabytes: int = 0
    """Most memory that it held."""

    @property
    def output(self) -> str:
        """What it has printed so far, with what earlier processes of the same log have printed."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""


def compile_shim(folder: Path) -> Path | None:
    """Compile the library that records and fakes system calls; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    target = folder / "shim.so"
    done = subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", target, HERE / "shim.c", "-lpthread"],
        capture_output=True,
        check=False,
    )
    return target if done.returncode == 0 else None


class Processes:
    """Starts processes; ends all of them when it is closed."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="vesper-chaos-"))
        shim = compile_shim(self._folder)
        self.has_shim = shim is not None
        preload = {"LD_PRELOAD": str(shim)} if shim else {}
        self._runner = subprocess.Popen(
            [sys.executable, "-m", "chaos.runner"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=HERE.parent,
            env={
                **os.environ,
                **THREADS,
                **preload,
                "XDG_STATE_HOME": str(self._folder / "state"),
            },
        )
        self._running: dict[int, Process] = {}

    def __enter__(self) -> "Processes":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end_all()
        self._runner.kill()
        self._runner.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(
        self, argv: Sequence[str | Path], log: Path, *, fault: Fault | None = None, **more: Any
    ) -> Process:
        """Run `vesper` with these arguments; `more` is for `runner`."""
        fired = log.with_name(f"{log.name}.{len(self._running)}.{time.monotonic_ns()}.fired")
        command = {
            "argv": [str(value) for value in argv],
            "log": str(log),
            "fired": str(fired),
            "fault": None if fault is None else asdict(fault),
            **more,
        }
        return self._started(command, log, fired)

    def call(self, function: str, log: Path, **arguments: Any) -> Process:
        """Call `module:function` in a process of its own."""
        command = {"call": function, "arguments": arguments, "log": str(log)}
        return self._started(command, log, log.with_name("unused"))

    def poll(self, process: Process) -> int | None:
        """Return the exit code, or None while it runs."""
        if process.code is None:
            reply = self._command(poll=process.pid)
            process.code, process.megabytes = reply["code"], reply["megabytes"]
            if process.code is not None:
                self._running.pop(process.pid, None)
        return process.code

    def wait(self, process: Process, *, limit: float = 120.0) -> int | None:
        """Wait for the end; None if it takes longer than so many seconds."""
        deadline = time.monotonic() + limit
        while self.poll(process) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        return process.code

    def signal(self, process: Process, which: signal.Signals) -> None:
        """Send a signal to the process and to those that it started."""
        if self.poll(process) is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, which)

    def end_all(self) -> None:
        """Kill whatever a trial has left running, with what that has started."""
        for process in list(self._running.values()):
            self.signal(process, signal.SIGKILL)
            self.wait(process, limit=10)

    def _started(self, command: dict[str, Any], log: Path, fired: Path) -> Process:
        process = Process(self._command(**command)["pid"], log, fired)
        self._running[process.pid] = process
        return process

    def _command(self, **command: Any) -> Any:
        assert self._runner.stdin
        assert self._runner.stdout
        self._runner.stdin.write(json.dumps(command) + "\n")
        self._runner.stdin.flush()
        return json.loads(self._runner.stdout.readline())
