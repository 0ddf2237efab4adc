"""Utility of every method at every epsilon on every public data set, five seeds; resumable.

python -m benchmarks.utility --data ../shared/data            run missing cells
python -m benchmarks.utility --table                          write utility.md and utility.svg
"""

import argparse
import shlex
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any

from benchmarks.page import log
from benchmarks.utility_cells import EPSILONS, SEEDS, all_cells, config_of, datasets_in
from benchmarks.utility_plot import CONTENDERS, draw_plot
from benchmarks.utility_table import page

from vesper.cli.setting_options import settings_from_options
from vesper.datasets.loaders.convert import convert
from vesper.method.registry import METHODS
from vesper.study.cell import Cell, datasets_of, settings_digest, unfinished
from vesper.study.measure import training
from vesper.study.runner import TimeEstimate, format_duration, run_jobs
from vesper.study.study import outcome
from vesper.study.study_results import append_line, read_lines
from vesper.study.worker import Job

HERE = Path(__file__).parent
ROOT = HERE.parent


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--results", type=Path, default=HERE / "utility.jsonl")
    parser.add_argument("--work", type=Path, help="folder for party folders; default: a new one")
    parser.add_argument("--datasets", type=names, help="a,b,..; default: all in --data")
    parser.add_argument("--methods", type=names, help="a,b,..; default: all methods")
    parser.add_argument("--epsilons", type=numbers, default=list(EPSILONS))
    parser.add_argument("--seeds", type=names, default=[str(seed) for seed in SEEDS])
    parser.add_argument("--only", help="DATASET/METHOD/EPSILON/SEED: only this cell")
    parser.add_argument("--set", action="append", default=[], help="any setting, as key=value")
    parser.add_argument("--limit", type=float, default=3600.0, help="most seconds per cell")
    parser.add_argument("--workers", type=int, default=1, help="processes with one thread each")
    parser.add_argument("--dry-run", action="store_true", help="print what would be run")
    parser.add_argument("--table", action="store_true", help="write utility.md and its plots")
    return parser.parse_args(arguments)


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def numbers(text: str) -> list[float]:
    return [float(name) for name in names(text)]


def requested_cells(options: argparse.Namespace) -> list[Cell]:
    available = datasets_in(options.data)
    if options.only:
        dataset, method, epsilon, seed = options.only.split("/")
        cells = [Cell(dataset, method, float(epsilon), int(seed))]
    else:
        chosen = [name for name in available if name in (options.datasets or available)]
        refuse_unknown("--datasets", options.datasets, available)
        refuse_unknown("--methods", options.methods, METHODS)
        methods = options.methods or list(METHODS)
        cells = all_cells(chosen, methods, options.epsilons, [int(seed) for seed in options.seeds])
    refuse_unknown("--data", [cell.dataset for cell in cells], available)
    refuse_unknown("--methods", [cell.method for cell in cells], METHODS)
    return cells


def refuse_unknown(option: str, wanted: list[str] | None, known: Any) -> None:
    unknown = [name for name in wanted or [] if name not in known]
    if unknown:
        raise SystemExit(f"{option}: expected some of {', '.join(known)}, got '{unknown[0]}'")


def party_folders(data: Path, dataset: str, work: Path) -> Path:
    """Convert a data set once."""
    folder = work / dataset
    if not folder.exists():
        log(f"{dataset}: making party folders")
        convert(data / dataset, folder)
    return folder


def run(options: argparse.Namespace, work: Path) -> None:
    overrides = settings_from_options(options.set)
    cells = requested_cells(options)
    lines = read_lines(options.results)
    configs = {cell: config_of(cell, overrides) for cell in cells}
    settings = {cell: settings_digest(config) for cell, config in configs.items()}
    missing = unfinished(cells, lines, settings=settings, limit=options.limit)
    log(f"{len(cells)} cells requested, {len(cells) - len(missing)} done, {len(missing)} to do")
    if options.dry_run or not missing:
        for cell in missing:
            print(f"{cell.dataset}/{cell.method}/{cell.epsilon:g}/{cell.seed}")
        return
    folders = {name: party_folders(options.data, name, work) for name in datasets_of(missing)}
    jobs = [
        Job(
            cell=cell,
            config=configs[cell],
            folder=folders[cell.dataset],
            measure="training",
            measure_function=training,
        )
        for cell in missing
    ]
    estimate, left, started = TimeEstimate(lines), dict.fromkeys(missing), monotonic()
    with closing(
        run_jobs(jobs, workers=options.workers, limit=options.limit, work=work)
    ) as running:
        for line in running:
            append_line(options.results, line)
            estimate.add_result(line)
            del left[line.cell]
            seconds = estimate.left(left, elapsed=monotonic() - started)
            log(f"{bar(len(missing) - len(left), len(missing))} {format_duration(seconds)} left")
            log(outcome(line))


def bar(done: int, total: int, width: int = 24) -> str:
    """Draw a progress bar.

    >>> bar(3, 6, width=4)
    '[##..] 3 of 6,'
    """
    full = width * done // total
    return f"[{'#' * full}{'.' * (width - full)}] {done} of {total},"


def main(arguments: list[str] | None = None) -> None:
    given = sys.argv[1:] if arguments is None else arguments
    options = parse_arguments(given)
    if options.table:
        lines = read_lines(options.results)
        command = shlex.join(["python", "-m", "benchmarks.utility", *given])
        available = list(datasets_in(options.data))
        options.results.with_suffix(".md").write_text(
            page(lines, command=command, datasets=available)
        )
        options.results.with_suffix(".svg").write_text(draw_plot(lines))
        contenders = options.results.with_name(f"{options.results.stem}-contenders.svg")
        contenders.write_text(draw_plot(lines, CONTENDERS))
        return
    if not options.data.is_dir():
        raise SystemExit(
            f"{options.data}: expected a folder of public data sets, found none; set --data"
        )
    if options.work:
        options.work.mkdir(parents=True, exist_ok=True)
        run(options, options.work)
        return
    with tempfile.TemporaryDirectory(prefix="vesper-utility-") as temporary:
        run(options, Path(temporary))


if __name__ == "__main__":
    main()
