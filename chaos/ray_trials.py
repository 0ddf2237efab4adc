"""Releases on workers of Ray, with kills of workers or of the driver.

A killed worker costs time and changes no bit; of a killed driver nothing is left, neither output
nor processes.
"""

import importlib.util
import os
import time
from contextlib import suppress
from pathlib import Path
from signal import SIGINT, SIGKILL

from chaos.institutions import write_graph, write_labels
from chaos.lab import SIGNS_OF_A_BUG, TrialPlace
from chaos.processes import Process, Processes
from chaos.trial import FailedError, SkippedError
from chaos.verbs import release

RAY_SECONDS = 200.0
GONE_SECONDS = 100.0
"""After which no process of a killed driver may be left."""


def run_ray(processes: Processes, place: TrialPlace) -> None:
    """Release once without Ray, and once with it while something is killed."""
    if importlib.util.find_spec("ray") is None:
        raise SkippedError("needs ray: pip install 'vesper[ray]'")
    root = place.folder
    write_graph(root / "data", step=1)
    write_labels(root / "label")
    expected = _local(processes, place)
    out = root / "out" / "released.parquet"
    arguments = [*release(root), "--engine", "ray", "--ray-workers", "2"]
    process = processes.start(arguments, root / "ray.log")
    seen = _disturb(processes, process, place)
    code = processes.wait(process, limit=RAY_SECONDS)
    place.report.codes.append(str(code))
    _refuse_survivors(seen)
    allowed = {"worker": {0}, "driver": {0, -SIGKILL}, "interrupt": {0, 130}}[place.variant]
    if code not in allowed:
        raise FailedError(f"ended with {code}\n{process.output[-3000:]}")
    if any(sign in process.output for sign in SIGNS_OF_A_BUG):
        raise FailedError(f"printed a traceback\n{process.output[-4000:]}")
    if code == 0 and out.read_bytes() != expected:
        raise FailedError("expected the same bytes as without Ray")
    if code == 130 and out.exists():
        raise FailedError("expected no output after Ctrl-C")


def _local(processes: Processes, place: TrialPlace) -> bytes:
    given = place.shared / "without-ray.parquet"
    if not given.exists():
        (place.folder / "out").mkdir()
        process = processes.start(release(place.folder), place.folder / "local.log")
        if processes.wait(process, limit=120) != 0:
            raise FailedError(process.output)
        (place.folder / "out" / "released.parquet").rename(given)
        (place.folder / "out" / "released.statement.json").unlink()
    (place.folder / "out").mkdir(exist_ok=True)
    return given.read_bytes()


def _disturb(processes: Processes, process: Process, place: TrialPlace) -> set[int]:
    """Wait for workers, then kill one, the driver, or interrupt it; return all that were seen."""
    chance, seen = place.chance, set[int]()
    deadline = time.monotonic() + RAY_SECONDS
    at_worker = chance.choice((1, 2))
    while processes.poll(process) is None and time.monotonic() < deadline:
        family = descendants(process.pid)
        seen |= set(family)
        workers = [
            pid for pid, name in family.items() if name.startswith("ray::") and "Agent" not in name
        ]
        if len(workers) >= at_worker:
            time.sleep(chance.uniform(0, 1.0))
            if place.variant == "worker":
                victim = chance.choice(workers)
                with suppress(ProcessLookupError):
                    os.kill(victim, SIGKILL)
                place.report.faults.append("killed a worker")
            else:
                which = SIGKILL if place.variant == "driver" else SIGINT
                with suppress(ProcessLookupError):
                    os.kill(process.pid, which)
                place.report.faults.append(f"{which.name} to the driver")
            break
        time.sleep(0.05)
    return seen | set(descendants(process.pid))


def _refuse_survivors(pids: set[int]) -> None:
    """Wait until all of Ray's processes are gone; end those that stay, and fail."""
    deadline = time.monotonic() + GONE_SECONDS
    while time.monotonic() < deadline:
        left = [pid for pid in pids if "ray" in command_of(pid)]
        if not left:
            return
        time.sleep(0.2)
    names = [command_of(pid) for pid in left]
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, SIGKILL)
    raise FailedError(f"expected no process of Ray afterwards, found {names}")


def command_of(pid: int) -> str:
    """Command line of a process; empty once it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def descendants(pid: int) -> dict[int, str]:
    """Command lines of the processes that a process has started, and those that they have."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(fields[1])
    found, fresh = set[int](), {pid}
    while fresh:
        fresh = {child for child, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return {each: command_of(each) for each in found}
