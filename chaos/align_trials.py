"""`vesper align`, with and without private set intersection, with faults on either side."""

import time
from signal import SIGINT, SIGKILL

import pyarrow.parquet as pq

from chaos.faults import Fault
from chaos.institutions import Institutions
from chaos.lab import SIGNS_OF_A_BUG, TrialPlace, check
from chaos.processes import Process, Processes
from chaos.trial import FailedError, draw_fault

ROUND_SECONDS = 40.0


def run_align(processes: Processes, place: TrialPlace) -> None:
    """Align once with a fault, then again until both sides have succeeded."""
    world = Institutions(place.folder)
    world.settings()
    faulty = place.chance.choice(("platform", "bank"))
    fault: Fault | None = draw_fault(
        place.chance,
        ("kill", "kill", "full", "interrupt"),
        kinds=("send", "receive", "send", "receive", "fsync", "replace"),
        most=6,
    )
    if fault and fault.action == "full" and not processes.has_shim:
        fault = draw_fault(place.chance, ("kill",), kinds=("send", "receive"), most=6)
    private = ["--private"] if place.variant == "private" else []
    for _ in range(4):
        both: dict[str, Process] = {}
        for name in ("platform", "bank"):
            arguments = ["align", "--config", str(world.file(name)), *private]
            own = fault if name == faulty else None
            watched = {"folder": str(world.root / name)} if processes.has_shim else {}
            log = place.folder / f"{name}.log"
            both[name] = processes.start(arguments, log, fault=own, **watched)
        codes = _end(processes, both)
        place.report.codes += [f"{name} {code}" for name, code in codes.items()]
        if fault is not None and both[faulty].fired.exists():
            place.report.faults.append(f"{faulty}: {fault}")
        _refuse(both, codes)
        fault = None
        if set(codes.values()) == {0}:
            _check_equal(world)
            for name in both:
                folder = str(world.root / name)
                check(processes, "check_leftovers", place.folder / "check.log", folder=folder)
            return
    raise FailedError(f"did not align in four rounds: {place.report.codes}\n{_outputs(both)}")


def _end(processes: Processes, both: dict[str, Process]) -> dict[str, int | None]:
    """Wait for both; a side that is alone is interrupted after a while, as a person would do."""
    deadline, alone_since = time.monotonic() + ROUND_SECONDS, None
    while True:
        codes = {name: processes.poll(process) for name, process in both.items()}
        if None not in codes.values():
            return codes
        if any(code is not None for code in codes.values()):
            alone_since = alone_since or time.monotonic()
        if time.monotonic() > deadline:
            raise FailedError(f"did not end\n{_outputs(both)}")
        if alone_since is not None and time.monotonic() - alone_since > 10:
            for process in both.values():
                processes.signal(process, SIGINT)
        time.sleep(0.02)


def _refuse(both: dict[str, Process], codes: dict[str, int | None]) -> None:
    if not set(codes.values()) <= {0, 1, 4, 130, -SIGKILL}:
        raise FailedError(f"ended with {codes}\n{_outputs(both)}")
    if any(sign in _outputs(both) for sign in SIGNS_OF_A_BUG):
        raise FailedError(f"printed a traceback\n{_outputs(both)}")


def _outputs(both: dict[str, Process]) -> str:
    return "\n".join(f"--- {name}\n{process.output[-3000:]}" for name, process in both.items())


def _check_equal(world: Institutions) -> None:
    tables = [
        pq.read_table(world.root / name / "state" / "aligned.parquet")
        for name in ("platform", "bank")
    ]
    proofs = [(table.schema.metadata or {}).get(b"vesper_proof") for table in tables]
    if tables[0].column("id") != tables[1].column("id") or len(set(proofs)) != 1:
        raise FailedError("expected equal ids and proofs at both sides")
