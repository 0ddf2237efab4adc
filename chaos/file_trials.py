"""Damaged and malicious files: mutations of valid ones, read with bounded time and memory.

A verb that reads such a file ends with a documented exit code and without a traceback. It may
succeed: some mutations change nothing that matters.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np

from chaos.institutions import write_graph, write_labels
from chaos.lab import SIGNS_OF_A_BUG, Arguments, TrialPlace
from chaos.party_trials import finished_run
from chaos.processes import Processes
from chaos.trial import FailedError
from chaos.verbs import learn, prepare, write_release, write_transactions

MOST_SECONDS = 60.0
MOST_MEGABYTES = 2048
"""Far above what a file of a few kilobytes needs, and far below what one can ask for."""


def _party_folders(processes: Processes, place: TrialPlace) -> tuple[list[Path], Arguments]:
    root = place.folder
    write_graph(root / "data", step=1)
    write_labels(root / "label")
    files = [root / "data" / "nodes.parquet", root / "data" / "edges.parquet"]
    return [*files, root / "label" / "labels.parquet"], ["data", "check", root]


def _transactions(processes: Processes, place: TrialPlace) -> tuple[list[Path], Arguments]:
    root = place.folder
    write_transactions(root, Random(7))
    (root / "out").mkdir()
    files = [root / f"{name}.parquet" for name in ("transfers", "activity", "labels")]
    return files, prepare(root)


def _released(processes: Processes, place: TrialPlace) -> tuple[list[Path], Arguments]:
    root = place.folder
    write_graph(root / "data", step=1)
    write_labels(root / "label")
    (root / "out").mkdir()
    given = place.shared / "exported"
    if not given.exists():
        given.mkdir()
        write_release(processes, root, given)
    shutil.copytree(given, root / "released")
    file = root / "released" / "released.parquet"
    statement = next((root / "released").glob("*.json"))
    verify: Arguments = ["verify", file]
    return [file, file, statement], place.chance.choice([verify, learn(root)])


def _reddit(processes: Processes, place: TrialPlace) -> tuple[list[Path], Arguments]:
    source, chance = place.folder / "reddit", np.random.default_rng(3)
    source.mkdir()
    pairs = chance.integers(0, 50, (2, 200))
    np.savez(
        source / "reddit_data.npz",
        feature=chance.normal(size=(50, 3)),
        label=np.arange(50) % 3,
        node_types=np.arange(50) % 3 + 1,
    )
    save = place.chance.choice([np.savez, np.savez_compressed])
    save(
        source / "reddit_graph.npz",
        row=np.concatenate([pairs[0], pairs[1]]),
        col=np.concatenate([pairs[1], pairs[0]]),
        shape=np.array([50, 50]),
    )
    files = [source / "reddit_data.npz", source / "reddit_graph.npz"]
    return files, ["data", "convert", source, "--out", place.folder / "converted"]


def _saved_run(processes: Processes, place: TrialPlace) -> tuple[list[Path], Arguments]:
    """Files of a finished run at the label party; its peer is away."""
    shutil.copytree(finished_run(processes, place), place.folder / "run")
    root, result = place.folder / "run", place.folder / "run" / "bank" / "state" / "result"
    config = root / "bank" / "bank.toml"
    text = config.read_text().replace('when_lost = "wait"', 'when_lost = "stop"')
    config.write_text(text.replace("patience = 4.0", "patience = 0.5"))
    (root / "ids.txt").write_text("1\n2\n")
    out = root / "predictions.parquet"
    files = [result / "label_party.npz", result / "label_run.json", result / "result.json"]
    return files, ["predict", "--config", config, "--ids", root / "ids.txt", "--out", out]


def _checkpoint(processes: Processes, place: TrialPlace) -> tuple[list[Path], Arguments]:
    """Files of the answering side: the saved run of the data party, and its releases."""
    shutil.copytree(finished_run(processes, place), place.folder / "run")
    state = place.folder / "run" / "platform" / "state"
    shutil.rmtree(state / "result" / "model", ignore_errors=True)
    files = [state / "result" / "data_run.npz", *sorted((state / "releases").glob("*.npz"))]
    config = place.folder / "run" / "platform" / "platform.toml"
    damaged_port = config.read_text().replace('listen = "127.0.0.1:', 'listen = "203.0.113.1:')
    config.write_text(damaged_port)  # an address that is not ours: it ends when it would listen
    return files, ["party", "data", "--config", config, "--answer"]


def _ledger(processes: Processes, place: TrialPlace) -> tuple[list[Path], Arguments]:
    shutil.copytree(finished_run(processes, place), place.folder / "run")
    ledger = place.folder / "run" / "platform" / "ledger.sqlite"
    verb = place.chance.choice(["verify", "show"])
    return [ledger], ["budget", verb, ledger]


READERS: dict[str, Callable[[Processes, TrialPlace], tuple[list[Path], Arguments]]] = {
    "party folders (Parquet)": _party_folders,
    "transactions (Parquet)": _transactions,
    "export (Parquet and JSON)": _released,
    "Reddit (npz)": _reddit,
    "saved run (npz and JSON)": _saved_run,
    "data party's run (npz)": _checkpoint,
    "ledger (SQLite)": _ledger,
}
WITHOUT_MUTATION = {"saved run (npz and JSON)": 4, "data party's run (npz)": 2}
"""Exit codes with valid files, where the verb cannot go on without a peer or an address."""
MUTATIONS_PER_TRIAL = 4


def run_file(processes: Processes, place: TrialPlace) -> None:
    """Mutate one file several times, from the valid one each time."""
    place.folder.mkdir(exist_ok=True)
    files, arguments = READERS[place.variant](processes, place)
    path = place.chance.choice(files)
    valid = path.read_bytes()
    for number in range(MUTATIONS_PER_TRIAL + 1):
        how, mutated = mutate(valid, place.chance) if number else ("unchanged", valid)
        path.write_bytes(mutated)
        place.report.faults.append(f"{path.name}: {how}")
        for name in ("out", "converted", "run/predictions.parquet"):
            _remove(place.folder / name)
        (place.folder / "out").mkdir()
        process = processes.start(arguments, place.folder / f"{number}.log")
        code = processes.wait(process, limit=MOST_SECONDS)
        place.report.codes.append(str(code))
        allowed = (0, 1, 2, 3, 4) if number else (WITHOUT_MUTATION.get(place.variant, 0),)
        problem = ""
        if code not in allowed:
            problem = f"ended with {code}"
        elif any(sign in process.output for sign in SIGNS_OF_A_BUG):
            problem = "printed a traceback"
        elif process.megabytes > MOST_MEGABYTES:
            problem = f"took {process.megabytes} MB"
        if problem:
            kept = path.with_name(f"{path.name}.kept")
            kept.write_bytes(mutated)
            raise FailedError(f"{problem}: {path.name}, {how}\n{process.output[-3000:]}")


def mutate(content: bytes, chance: Random) -> tuple[str, bytes]:
    """Return what was done, and the mutated content."""
    changed = bytearray(content)
    at = chance.randrange(len(content))
    if chance.random() < 0.5:  # where the formats keep what describes the rest
        at = max(0, len(content) - 1 - min(int(chance.expovariate(1 / 400)), len(content) - 1))
    size = min(chance.choice((1, 4, 8, 64, 512)), len(content) - at)
    ways = ("flip", "flip", "flip", "cut", "noise", "ones", "zeros", "number", "move")
    way = chance.choice(ways)
    if way == "flip":
        count = chance.choice((1, 1, 2, 8))
        for _ in range(count):
            spot = chance.randrange(len(content)) if count > 2 else at
            changed[spot] ^= 1 << chance.randrange(8)
    elif way == "cut":
        del changed[at:]
    elif way == "noise":
        changed[at : at + size] = chance.randbytes(size)
    elif way == "ones":
        changed[at : at + size] = b"\xff" * size
    elif way == "zeros":
        changed[at : at + size] = bytes(size)
    elif way == "number":
        huge = chance.choice((1 << 31, (1 << 31) - 1, 1 << 40, (1 << 63) - 1, 0xFFFFFFFF))
        changed[at : at + 8] = huge.to_bytes(8, "little")[: len(changed) - at]
    else:
        start = chance.randrange(len(content))
        changed[at : at + size] = changed[start : start + size]
    return f"{way} at {at} of {len(content)}", bytes(changed)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
