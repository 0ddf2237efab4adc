"""Utility: every method at every epsilon on every public set, five seeds; resumable.

python -m benchmarks.utility --data ../shared/data            run what is missing
python -m benchmarks.utility --table                          write utility.md and utility.svg
"""

import argparse
import json
import multiprocessing
import shlex
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from time import monotonic
from typing import Any

from benchmarks.page import say
from benchmarks.utility_cells import (
    EPSILONS,
    SEEDS,
    Cell,
    Line,
    all_cells,
    append_line,
    datasets_in,
    read_lines,
    unfinished,
)
from benchmarks.utility_plot import drawn
from benchmarks.utility_run import (
    ask_for_one_thread,
    code_digest,
    config_of,
    run_cell,
    settings_digest,
    start_worker,
)
from benchmarks.utility_table import page

from vesper.datasets.loaders.convert import convert
from vesper.method.registry import METHODS

HERE = Path(__file__).parent
ROOT = HERE.parent
CELLS_A_POOL = 25


def asked_for(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--results", type=Path, default=HERE / "utility.jsonl")
    parser.add_argument("--work", type=Path, help="folder for party folders; default: a new one")
    parser.add_argument("--datasets", type=names, help="a,b,..; default: all in --data")
    parser.add_argument("--methods", type=names, help="a,b,..; default: all there are")
    parser.add_argument("--epsilons", type=numbers, default=list(EPSILONS))
    parser.add_argument("--seeds", type=names, default=[str(seed) for seed in SEEDS])
    parser.add_argument("--only", help="DATASET/METHOD/EPSILON/SEED: this one cell")
    parser.add_argument("--set", action="append", default=[], help="any setting, as key=value")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds a cell may take")
    parser.add_argument("--workers", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--dry-run", action="store_true", help="say what would be run")
    parser.add_argument("--table", action="store_true", help="write utility.md and utility.svg")
    return parser.parse_args(arguments)


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def numbers(text: str) -> list[float]:
    return [float(name) for name in names(text)]


def cells_asked_for(asked: argparse.Namespace) -> list[Cell]:
    there = datasets_in(asked.data)
    if asked.only:
        dataset, method, epsilon, seed = asked.only.split("/")
        cells = [Cell(dataset, method, float(epsilon), int(seed))]
    else:
        chosen = [name for name in there if name in (asked.datasets or there)]
        refuse_unknown("--datasets", asked.datasets, there)
        refuse_unknown("--methods", asked.methods, METHODS)
        methods = asked.methods or list(METHODS)
        cells = all_cells(chosen, methods, asked.epsilons, [int(seed) for seed in asked.seeds])
    refuse_unknown("--data", [cell.dataset for cell in cells], there)
    refuse_unknown("--methods", [cell.method for cell in cells], METHODS)
    return cells


def refuse_unknown(option: str, wanted: list[str] | None, known: Any) -> None:
    unknown = [name for name in wanted or [] if name not in known]
    if unknown:
        raise SystemExit(f"{option}: expected some of {', '.join(known)}, got '{unknown[0]}'")


def overrides_of(pairs: list[str]) -> dict[str, Any]:
    given = dict(pair.split("=", 1) for pair in pairs)
    return {key: _value(text) for key, text in given.items()}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def party_folders(data: Path, dataset: str, work: Path) -> Path:
    """Convert a set once."""
    folder = work / dataset
    if not folder.exists():
        say(f"{dataset}: making party folders")
        convert(data / dataset, folder)
    return folder


def run(asked: argparse.Namespace, work: Path) -> None:
    overrides = overrides_of(asked.set)
    cells = cells_asked_for(asked)
    lines = read_lines(asked.results)
    settings = {cell: settings_digest(config_of(cell, overrides)) for cell in cells}
    missing = unfinished(cells, lines, settings=settings, limit=asked.limit)
    say(f"{len(cells)} cells asked for, {len(cells) - len(missing)} done, {len(missing)} to do")
    if asked.dry_run or not missing:
        for cell in missing:
            print(f"{cell.dataset}/{cell.method}/{cell.epsilon:g}/{cell.seed}")
        return
    folders = {name: party_folders(asked.data, name, work) for name in _names(missing)}
    code, started = code_digest(), monotonic()
    ask_for_one_thread()
    expected, left = Expected(lines), dict.fromkeys(missing)
    for batch in batches(missing, CELLS_A_POOL * asked.workers):
        # A new pool now and then, for what a cell leaves in memory adds up; `max_tasks_per_child`
        # would do the same, but hangs in Python 3.11.
        with ProcessPoolExecutor(
            asked.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=start_worker,
        ) as pool:
            waiting: list[Future[Line]] = [
                pool.submit(run_cell, c, folders[c.dataset], work, overrides, asked.limit, code)
                for c in batch
            ]
            try:
                for finished in as_completed(waiting):
                    line = finished.result()
                    append_line(asked.results, line)
                    expected.learn(line)
                    del left[line.cell]
                    share = (monotonic() - started) / max(expected.spent, 1e-9)
                    seconds = share * sum(expected.of(cell) for cell in left)
                    say(f"{bar(len(missing) - len(left), len(missing))} {clock(seconds)} left")
                    say(outcome(line))
            except BrokenProcessPool:
                raise SystemExit(
                    "a worker was killed, perhaps for want of memory; start again, with fewer "
                    "--workers"
                ) from None
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def batches(cells: list[Cell], size: int) -> Iterator[list[Cell]]:
    for start in range(0, len(cells), size):
        yield cells[start : start + size]


def _names(cells: list[Cell]) -> list[str]:
    return list(dict.fromkeys(cell.dataset for cell in cells))


class Expected:
    """How long a cell will take: as others of its set and method, or of its set, or any."""

    def __init__(self, lines: list[Line]) -> None:
        self._lines = list(lines)
        self.spent = 0.0

    def learn(self, line: Line) -> None:
        self._lines.append(line)
        self.spent += line.seconds

    def of(self, cell: Cell) -> float:
        like = [line for line in self._lines if line.dataset == cell.dataset]
        nearest = [line for line in like if line.method == cell.method] or like or self._lines
        return sum(line.seconds for line in nearest) / max(len(nearest), 1)


def bar(done: int, total: int, width: int = 24) -> str:
    """Draw how far it is.

    >>> bar(3, 6, width=4)
    '[##..] 3 of 6,'
    """
    full = width * done // total
    return f"[{'#' * full}{'.' * (width - full)}] {done} of {total},"


def outcome(line: Line) -> str:
    where = f"{line.dataset} {line.method} epsilon {line.epsilon:g} seed {line.seed}"
    if line.failed:
        return f"{where}: FAILED, {line.failed}"
    if line.limit is not None:
        return f"{where}: stopped after {line.limit:g} s"
    return f"{where}: {line.metric} {line.test:.2f} in {line.seconds:.0f} s"


def clock(seconds: float) -> str:
    """Say a time in the unit that fits.

    >>> clock(45), clock(600), clock(10_000)
    ('45 s', '10 min', '2.8 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def main(arguments: list[str] | None = None) -> None:
    given = sys.argv[1:] if arguments is None else arguments
    asked = asked_for(given)
    if asked.table:
        lines = read_lines(asked.results)
        command = shlex.join(["python", "-m", "benchmarks.utility", *given])
        there = list(datasets_in(asked.data))
        asked.results.with_suffix(".md").write_text(page(lines, command=command, datasets=there))
        asked.results.with_suffix(".svg").write_text(drawn(lines))
        return
    if not asked.data.is_dir():
        raise SystemExit(f"{asked.data}: expected the public sets, found no folder; give --data")
    if asked.work:
        asked.work.mkdir(parents=True, exist_ok=True)
        run(asked, asked.work)
        return
    with tempfile.TemporaryDirectory(prefix="vesper-utility-") as temporary:
        run(asked, Path(temporary))


if __name__ == "__main__":
    main()
