"""Verbs that write an output: interrupted, killed, or on a disk that fills up; then run again.

The output is whole or absent. The same command succeeds afterwards, and writes the same bytes where
it has a seed.
"""

import hashlib
import json
import shutil
from pathlib import Path
from signal import SIGINT, SIGKILL

from chaos.faults import Action, Fault, Kind
from chaos.lab import SIGNS_OF_A_BUG, Arguments, TrialPlace
from chaos.processes import Process, Processes
from chaos.trial import FailedError, draw_fault
from chaos.verbs import VERBS, write_inputs

SEEDED = ("release", "prepare", "data finance")
"""Verbs whose output is the same bytes each time."""


def run_command(processes: Processes, place: TrialPlace) -> None:
    """Disturb a verb, look at what it has left, and run it again."""
    root = place.folder
    root.mkdir(exist_ok=True)
    write_inputs(processes, root, place)
    arguments, out = VERBS[place.variant](root), root / "out"
    process, disturbance = _start_disturbed(processes, arguments, place, out)
    code = processes.wait(process, limit=120)
    if code is None:
        raise FailedError(f"did not end\n{process.output}")
    place.report.codes.append(str(code))
    _check_end(process, code, disturbance)
    whole = code == 0 or (code == 130 and place.variant != "study" and _has_output(out))
    first, names = _digest(out), _names(out)  # before anything is read: readers keep caches
    if whole:
        _check_output(processes, root, place.variant)
    elif disturbance != "kill":
        _check_nothing_half_written(out, place.variant)
    _make_room(processes, root, place.variant, whole=whole)
    again = processes.start(arguments, root / "again.log")
    if processes.wait(again, limit=180) != 0:
        raise FailedError(f"ended with {again.code} afterwards\n{again.output}")
    _check_nothing_half_written(out, place.variant, is_done=True)
    _refuse_tracebacks(again)
    if whole and place.variant != "study" and _names(out) != names:
        raise FailedError(f"expected the same files when it runs again, found {names}")
    if whole and place.variant in SEEDED and _digest(out) != first:
        raise FailedError("expected the same bytes when it runs again")
    _check_output(processes, root, place.variant)


def _start_disturbed(
    processes: Processes, arguments: Arguments, place: TrialPlace, out: Path
) -> tuple[Process, str]:
    """Start a verb and disturb it; return how."""
    chance, log = place.chance, place.folder / "first.log"
    ways = ["interrupt", "kill", "later", "later"] + ["full"] * (2 * processes.has_shim)
    way = chance.choice(ways)
    if way == "later":
        return _signalled_later(processes, arguments, place, log)
    fault: Fault | None = None
    more: dict[str, object] = {}
    if way == "full":
        count = round(150 ** chance.random())
        more = {"folder": str(out), "full_at": count}
        place.report.faults.append(f"full from write {count}")
    else:
        action: Action = "kill" if way == "kill" else "interrupt"
        kinds: tuple[Kind, ...] = ("replace", "unlink")
        if place.variant not in ("learn", "prepare", "data finance"):
            kinds += ("fsync", "sql")
        fault = draw_fault(chance, (action,), kinds=kinds, most=8)
    process = processes.start(arguments, log, fault=fault, **more)
    if fault is not None:
        processes.wait(process, limit=120)
        if process.fired.exists():
            place.report.faults.append(str(fault))
    return process, way


def _signalled_later(
    processes: Processes, arguments: Arguments, place: TrialPlace, log: Path
) -> tuple[Process, str]:
    process = processes.start(arguments, log)
    way = place.chance.choice((SIGINT, SIGINT, SIGKILL))
    seconds = place.chance.uniform(0.2, 1.5)
    processes.wait(process, limit=seconds)
    if processes.poll(process) is None:
        processes.signal(process, way)
        place.report.faults.append(f"{way.name} after {seconds:.1f} s")
    return process, "interrupt" if way is SIGINT else "kill"


def _check_end(process: Process, code: int, disturbance: str) -> None:
    allowed = {"interrupt": {0, 130}, "kill": {0, -SIGKILL}, "full": {0, 1, 2}}[disturbance]
    if code not in allowed:
        raise FailedError(f"ended with {code} after {disturbance}\n{process.output[-3000:]}")
    if code == 130 and process.output.rstrip().count("vesper: interrupted") != 1:
        raise FailedError(f"expected one line about the interruption\n{process.output[-3000:]}")
    _refuse_tracebacks(process)


def _refuse_tracebacks(process: Process) -> None:
    if any(sign in process.output for sign in SIGNS_OF_A_BUG):
        raise FailedError(f"printed a traceback\n{process.output[-4000:]}")


def _check_nothing_half_written(out: Path, variant: str, *, is_done: bool = False) -> None:
    """Nothing is left but ledgers, and what a study keeps to continue."""
    keeps = variant in ("study", "charged release")
    found = [path.name for path in out.rglob("*") if "partial" in path.name]
    if not is_done and not keeps:
        found += [path.name for path in out.iterdir()]
    if not is_done and variant == "charged release":
        found += [path.name for path in out.iterdir() if path.name.startswith("released")]
    if found:
        raise FailedError(f"expected no incomplete output, found {sorted(found)}")


def _has_output(out: Path) -> bool:
    """Whether an interrupted verb had put its output in place; then the whole of it is there."""
    return any(path.name[0] != "." and "ledger" not in path.name for path in out.iterdir())


def _names(out: Path) -> set[str]:
    """Names of all files of an output, without caches of readers and notes of ledgers."""
    files = (path.relative_to(out) for path in out.rglob("*") if path.is_file())
    return {str(path) for path in files if "ledger" not in path.name}


def _make_room(processes: Processes, root: Path, variant: str, *, whole: bool) -> None:
    """Remove what the first process has written, as far as the verb does not continue from it."""
    if variant == "charged release":
        _return_what_was_reserved(processes, root)
        for path in (root / "out").glob("released*"):
            path.unlink()
    elif variant == "release" and not (root / "out" / "released.statement.json").exists():
        (root / "out" / "released.parquet").unlink(missing_ok=True)  # killed between the two files
    elif whole and variant != "study":
        shutil.rmtree(root / "out")
        (root / "out").mkdir()


def _return_what_was_reserved(processes: Processes, root: Path) -> None:
    """Return reservations of a killed process, as its owner would; none may block the next run."""
    ledger, log = root / "out" / "ledger.sqlite", root / "show.log"
    shown = processes.start(["budget", "show", ledger, "--json"], log)
    if processes.wait(shown, limit=60) != 0:
        raise FailedError(f"budget show ended with {shown.code}\n{shown.output}")
    for graph in json.loads(shown.output[shown.output.index("{") :])["graphs"]:
        for run in graph["open_reservations"]:
            done = processes.start(["budget", "return", ledger, "--run", run], log)
            if processes.wait(done, limit=60) != 0:
                raise FailedError(f"budget return ended with {done.code}\n{done.output}")


def _check_output(processes: Processes, root: Path, variant: str) -> None:
    """Read the output with another verb."""
    out = root / "out"
    readers: dict[str, Arguments] = {
        "simulate": ["report", out / "run", "--out", root / "page.html"],
        "release": ["verify", out / "released.parquet"],
        "charged release": ["verify", out / "released.parquet"],
        "study": ["study", "table", out / "study"],
        "data finance": ["data", "check", out / "finance"],
    }
    if variant in readers:
        reader = processes.start(readers[variant], root / "reader.log")
        if processes.wait(reader, limit=60) != 0:
            raise FailedError(f"cannot be read: {reader.output[-3000:]}")
    if variant == "charged release":
        verify: Arguments = ["budget", "verify", out / "ledger.sqlite"]
        reader = processes.start(verify, root / "reader.log")
        if processes.wait(reader, limit=60) != 0:
            raise FailedError(f"the ledger: {reader.output[-3000:]}")


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".json":  # statements have a time and a signature
            digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()
