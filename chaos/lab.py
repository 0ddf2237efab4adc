"""What trials share: processes, and the loop that starts parties again until all have finished."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from signal import SIGKILL

from chaos.faults import Fault
from chaos.power_loss import RecordedDisk
from chaos.processes import Process, Processes
from chaos.trial import FailedError, Report, SkippedError

SIGNS_OF_A_BUG = ("Traceback (most recent call last)", "Exception in thread", "Exception ignored")
MOST_STARTS = 10
TRIAL_SECONDS = 150.0
"""After which a run that does not end has hung."""
HELP_SECONDS = 6.0
"""After which a finished party is started again for one that still waits, as the documents say."""

Arguments = list[str | Path]


@dataclass
class Member:
    """One party of a trial: how it is started, and what will happen to it."""

    name: str
    arguments: Callable[[], Arguments]
    folder: Path
    """Everything that the party has written, for a power loss."""
    faults: list[Fault] = field(default_factory=list)
    """One for each start, as long as there are some."""
    kill_after: list[float] = field(default_factory=list)
    """Seconds after which it is killed from outside, one for each start."""


class Run:
    """Members that are started, and started again, until all have finished."""

    def __init__(
        self, processes: Processes, members: Sequence[Member], report: Report, chance: Random
    ) -> None:
        self._processes, self._report, self._chance = processes, report, chance
        self.members = {member.name: member for member in members}
        self.logs = {each.name: each.folder.parent / f"{each.name}.log" for each in members}
        self._current: dict[str, _Start] = {}
        self._running, self._finished = set[str](), set[str]()
        self._starts = dict.fromkeys(self.members, 0)

    def until_finished(self, *, except_for: str = "") -> None:
        """Run all members until each has ended with 0; help those that wait for finished ones.

        `except_for` is one that runs until it is stopped.

        Raises:
            FailedError: an exit code or an output is not as documented, or nothing ends.
        """
        self._running, self._finished = set(self.members), {except_for} & set(self.members)
        for name in self.members:
            self.start(name)
        deadline = alone_since = time.monotonic()
        while waiting := self._running - self._finished:
            if time.monotonic() > deadline + TRIAL_SECONDS:
                raise FailedError(f"{sorted(waiting)} did not end\n{self.outputs()}")
            time.sleep(0.01)
            if self._look_after(except_for):
                alone_since = time.monotonic()
            if time.monotonic() - alone_since > HELP_SECONDS:
                alone_since = time.monotonic()
                self._help()
        for name in sorted(self._running - {except_for}):  # helpers that nobody needs any more
            self._processes.signal(self._current[name].process, SIGKILL)
            self._processes.wait(self._current[name].process, limit=10)
        self.refuse_tracebacks()

    def _look_after(self, except_for: str) -> bool:
        """Kill what is due, start again what has ended; return whether one has finished."""
        has_finished = False
        for name in sorted(self._running):
            self._kill_if_due(name)
            code = self._processes.poll(self._current[name].process)
            if code is None:
                continue
            self.ended(name, code)
            if code == 0:
                has_finished = True
                self._finished.add(name)
                self._running.discard(name)
            elif name in self._finished - {except_for}:  # a helper: its own part was done
                self._running.discard(name)
            else:
                self.start(name)
        return has_finished

    def _help(self) -> None:
        """Start finished members again for those that still wait for something from them."""
        for name in sorted(self._finished - self._running):
            self._report.faults.append(f"{name} helped")
            self.start(name)
            self._running.add(name)

    def start(self, name: str) -> Process:
        """Start a member with its next fault."""
        self._starts[name] += 1
        if self._starts[name] > MOST_STARTS:
            raise FailedError(f"{name} was started {MOST_STARTS} times\n{self.outputs()}")
        member = self.members[name]
        fault = member.faults.pop(0) if member.faults else None
        kill_at = time.monotonic() + member.kill_after.pop(0) if member.kill_after else None
        more: dict[str, object] = {}
        disk = None
        if fault is not None and fault.action in ("power", "full", "clock"):
            if not self._processes.has_shim:
                raise SkippedError("needs a C compiler (cc) on Linux")
            more["folder"] = str(member.folder)
            if fault.action == "power":
                disk = RecordedDisk(member.folder, self.logs[name].with_suffix(".journal"))
                more["journal"] = str(disk.journal)
        process = self._processes.start(member.arguments(), self.logs[name], fault=fault, **more)
        self._current[name] = _Start(process, fault, disk, kill_at)
        return process

    def ended(self, name: str, code: int) -> None:
        """Note how a process ended; lose power if it was to.

        Raises:
            FailedError: that exit code does not follow from what was done to it.
        """
        start = self._current[name]
        has_fired = start.fault is not None and start.process.fired.exists()
        fault = start.fault if has_fired else None
        if fault is not None:
            self._report.faults.append(f"{name}: {fault}")
        self._report.codes.append(f"{name} {code}")
        allowed = {0, 4, -SIGKILL if fault or start.was_killed else 0}
        if fault is not None and fault.action == "full":
            allowed |= {1, 2}
        if fault is not None and fault.action == "interrupt":
            allowed |= {130}
        if code not in allowed:
            raise FailedError(f"{name} ended with {code} after {fault}\n{self.outputs()}")
        if code == -SIGKILL and fault is not None and start.disk is not None:
            start.disk.lose_power(self._chance)

    def refuse_tracebacks(self) -> None:
        """Refuse output that only a bug leaves."""
        for sign in SIGNS_OF_A_BUG:
            if any(
                sign in log.read_text(errors="replace")
                for log in self.logs.values()
                if log.exists()
            ):
                raise FailedError(f"'{sign}' was printed\n{self.outputs()}")

    def outputs(self) -> str:
        """What all members have printed."""
        return "\n".join(
            f"--- {name}\n{log.read_text(errors='replace')[-3000:]}"
            for name, log in self.logs.items()
            if log.exists()
        )

    def process(self, name: str) -> Process:
        """The last process of a member."""
        return self._current[name].process

    def _kill_if_due(self, name: str) -> None:
        start = self._current[name]
        if start.kill_at is not None and time.monotonic() > start.kill_at:
            start.kill_at, start.was_killed = None, True
            self._report.faults.append(f"{name}: kill from outside")
            self._processes.signal(start.process, SIGKILL)


@dataclass
class _Start:
    process: Process
    fault: Fault | None
    disk: RecordedDisk | None
    kill_at: float | None
    was_killed: bool = False


def check(processes: Processes, function: str, log: Path, **arguments: object) -> None:
    """Call a function of `replay` in a process of its own; it ends with a message if it fails.

    Raises:
        FailedError: with that message.
    """
    process = processes.call(f"chaos.replay:{function}", log, **arguments)
    code = processes.wait(process, limit=TRIAL_SECONDS)
    if code != 0:
        raise FailedError(f"{function}: {process.output.strip() or f'ended with {code}'}")


@dataclass(frozen=True)
class TrialPlace:
    """Where a trial runs, and what it draws from and notes to."""

    folder: Path
    variant: str
    chance: Random
    report: Report
    shared: Path
    """Folder that all trials share, for what takes long to make."""


def settings_text(values: Mapping[str, object]) -> str:
    """Write settings as lines of TOML."""
    texts = {
        name: f'"{value}"' if isinstance(value, str) else str(value).lower()
        for name, value in values.items()
    }
    return "".join(f"{name} = {text}\n" for name, text in texts.items())
