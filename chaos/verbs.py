"""Verbs that write an output: their arguments and what they read."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from chaos.institutions import write_graph, write_labels
from chaos.lab import Arguments, TrialPlace
from chaos.processes import Processes
from chaos.trial import FailedError

SMALL = ("--set", "epochs=2", "--set", "width=8", "--set", "batch_size=8")
GRID = """
title = "Chaos"
datasets = ["tiny"]
seeds = 1
[[grid]]
epsilon = 2
epochs = 1
width = 8
method = ["certified", "mlp"]
"""


def simulate(root: Path) -> Arguments:
    """Both parties in one process."""
    return ["simulate", "--data", root, "--out", root / "out" / "run", "--seed", "3", *SMALL]


def release(root: Path) -> Arguments:
    """An exported file, from a seed."""
    out = root / "out" / "released.parquet"
    return [
        "release",
        "--data",
        root,
        "--epsilon",
        "4",
        "--seed",
        "3",
        "--out",
        out,
        *SMALL,
        "--simulate-noise",
    ]


def charged_release(root: Path) -> Arguments:
    """An exported file, charged to a ledger."""
    return [
        *("release", "--data", root, "--epsilon", "4", "--out", root / "out" / "released.parquet"),
        *("--graph", "payments", "--ledger", root / "out" / "ledger.sqlite", *SMALL),
        *("--delta", "1e-3"),
    ]


def learn(root: Path) -> Arguments:
    """A model from an exported file, which is made first."""
    labels, out = root / "label", root / "out" / "model"
    given = root / "released" / "released.parquet"
    return ["learn", "--released", given, "--labels", labels, "--out", out, *SMALL]


def prepare(root: Path) -> Arguments:
    """Party folders from transactions."""
    tables = [f"--{name}={root / name}.parquet" for name in ("transfers", "activity", "labels")]
    windows = ["--train-window=2024-01-01..2024-01-08", "--test-window=2024-02-01..2024-02-08"]
    return ["prepare", *tables, *windows, "--out", root / "out" / "prepared"]


def study(root: Path) -> Arguments:
    """A grid of two cells, which a second run continues."""
    given: Arguments = ["--data", root / "sets", "--workers", "1", "--out", root / "out" / "study"]
    return ["study", "run", root / "grid.toml", *given]


def finance(root: Path) -> Arguments:
    """Simulated payments."""
    return ["data", "finance", "--nodes", "400", "--out", root / "out" / "finance"]


VERBS: dict[str, Callable[[Path], Arguments]] = {
    "simulate": simulate,
    "release": release,
    "charged release": charged_release,
    "learn": learn,
    "prepare": prepare,
    "study": study,
    "data finance": finance,
}


def write_inputs(processes: Processes, root: Path, place: TrialPlace) -> None:
    """Write what the verb of a trial reads."""
    write_graph(root / "data", step=1)
    write_labels(root / "label")
    (root / "out").mkdir()
    if place.variant == "charged release":  # enough for both runs
        ledger, log = root / "out" / "ledger.sqlite", root / "budget.log"
        terms = ["--graph", "payments", "--epsilon", "9", "--delta", "1e-3"]
        budget = processes.start(["budget", "set", ledger, *terms], log)
        if processes.wait(budget, limit=60) != 0:
            raise FailedError(budget.output)
    if place.variant == "study":
        write_graph(root / "sets" / "tiny" / "data", step=2)
        write_labels(root / "sets" / "tiny" / "label")
        (root / "grid.toml").write_text(GRID)
    elif place.variant == "prepare":
        write_transactions(root, Random(7))
    elif place.variant == "learn":
        given = place.shared / "released"
        if not given.exists():
            partial = place.shared / f"released-{time.monotonic_ns()}"
            partial.mkdir()
            write_release(processes, root, partial)
            partial.rename(given)
        shutil.copytree(given, root / "released")


def write_release(processes: Processes, root: Path, folder: Path) -> None:
    """Export features of the party folders in `root`, from a seed."""
    arguments, log = release(root), root / "given.log"
    arguments[arguments.index("--out") + 1] = folder / "released.parquet"
    if processes.wait(processes.start(arguments, log), limit=120) != 0:
        raise FailedError(log.read_text())


def write_transactions(root: Path, chance: Random) -> None:
    """Write transfers, activity and labels of thirty users in two windows."""
    days = [
        np.datetime64(f"2024-{month:02}-{day:02}T12:00:00", "us")
        for month in (1, 2)
        for day in range(1, 8)
    ]
    users = [f"user-{k}" for k in range(30)]

    def column(values: list[object], count: int = 400) -> list[object]:
        return [chance.choice(values) for _ in range(count)]

    times = pa.array(column(list(days)), pa.timestamp("us"))
    amounts = [chance.uniform(1, 50) for _ in range(400)]
    src, dst = column(list(users)), column(list(users))
    transfers = {"time": times, "src": src, "dst": dst, "amount": amounts}
    pq.write_table(pa.table(transfers), root / "transfers.parquet")
    activity = {
        "time": times,
        "user": src,
        "type": column(["login", "payment"]),
        "amount": amounts,
        "channel": ["web"] * 400,
    }
    pq.write_table(pa.table(activity), root / "activity.parquet")
    labels = {"id": users, "label": [k % 2 for k in range(30)]}
    pq.write_table(pa.table(labels), root / "labels.parquet")
