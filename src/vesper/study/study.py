"""A study from its grid to its results, gone on with where it was stopped."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from vesper.errors import InputError
from vesper.progress import Progress, silent
from vesper.session.config import nearest
from vesper.study.cell import Line, datasets_of, settings_digest, unfinished
from vesper.study.folder import Study, open_folder
from vesper.study.measure import MEASURES, Measure
from vesper.study.parameter_grid import Planned, plan_cells
from vesper.study.presets import find_grid
from vesper.study.runner import Expected, clock, run_jobs
from vesper.study.sets import Source, find_sources, make_folders
from vesper.study.study_results import JOURNAL, append_line, fold, read_results
from vesper.study.worker import Job

FOLD_EVERY = 50
"""Cells after which the journal is folded into the table."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a user asks for."""

    study: str
    """A preset, or a TOML file."""
    out: Path
    small: bool = False
    data: Path | None = None
    workers: int = 1
    seeds: int | None = None
    limit: float = 4 * 3600.0
    """Seconds that a cell may take."""


def run_study(
    asked: Asked, *, measures: Mapping[str, Measure] = MEASURES, progress: Progress = silent
) -> list[Line]:
    """Run what is missing; give the lines of cells that failed or were stopped.

    Args:
        asked: what to run, and where.
        measures: how cells are measured, by the name that grids have for it.
        progress: is told of every cell, with the time that is left.

    Raises:
        InputError: something asked for is wrong; nothing was begun.
    """
    name, grid = find_grid(asked.study)
    for option, number in (("--workers", asked.workers), ("--seeds", asked.seeds)):
        if number is not None and number < 1:
            raise InputError(f"{option}: expected 1 or more, got {number}")
    default = grid.small.seeds if asked.small else grid.seeds
    seeds = asked.seeds or default
    sources = find_sources(grid.datasets, data=asked.data, small=asked.small)
    planned = plan_cells(grid, sources, seeds=seeds, small=asked.small)
    for each in planned:
        if each.measure not in measures:
            hint = nearest(each.measure, list(measures))
            raise InputError(f"grid: unknown measure '{each.measure}'{hint}")
    lines = {key: str(source) for key, source in sources.items()}
    study = Study(name=name, small=asked.small, grid=grid, seeds=seeds, sources=lines)
    with open_folder(asked.out, study):
        return _run(asked, planned, sources, measures, progress)


def _run(
    asked: Asked,
    planned: list[Planned],
    sources: Mapping[str, Source],
    measures: Mapping[str, Measure],
    progress: Progress,
) -> list[Line]:
    """Run what is missing in a folder that is ours."""
    lines = read_results(asked.out)
    settings = {each.cell: settings_digest(each.config) for each in planned}
    missing = set(unfinished(settings, lines, settings=settings, limit=asked.limit))
    to_do = [each for each in planned if each.cell in missing]
    folders = {
        name: make_folders(sources[name], asked.out / "data", progress=progress)
        for name in datasets_of([each.cell for each in to_do])
    }
    jobs = [
        Job(
            cell=each.cell,
            config=each.config,
            folder=folders[each.cell.dataset],
            measure=each.measure,
            measured_by=measures[each.measure],
        )
        for each in to_do
    ]
    failed, expected, started = [], Expected(lines), monotonic()
    left = dict.fromkeys(each.cell for each in to_do)
    try:
        progress("cells", len(planned) - len(left), len(planned))
        with closing(
            run_jobs(jobs, workers=asked.workers, limit=asked.limit, work=asked.out)
        ) as running:
            for line in running:
                append_line(asked.out / JOURNAL, line)
                expected.learn(line)
                del left[line.cell]
                if not line.is_measured:
                    failed.append(line)
                remaining = clock(expected.left(left, elapsed=monotonic() - started))
                note = f"{remaining} left; {outcome(line)}"
                progress("cells", len(planned) - len(left), len(planned), note)
                if len(left) % FOLD_EVERY == 0:
                    fold(asked.out)
    finally:
        fold(asked.out)
    return failed


def outcome(line: Line) -> str:
    """Say in a line what became of a cell."""
    if line.failed:
        return f"{line.cell}: FAILED, {line.failed}"
    if line.limit is not None:
        return f"{line.cell}: stopped after {line.limit:g} s"
    value = f"{line.metric} {line.test:.2f}" if line.test is not None else line.metric
    return f"{line.cell}: {value} in {line.seconds:.0f} s"
