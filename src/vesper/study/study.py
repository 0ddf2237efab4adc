"""Run of a study from its grid to its results; resumes where it was stopped."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from vesper.errors import InputError, VesperError
from vesper.progress import Progress, no_progress
from vesper.session.config import suggest_key
from vesper.study.cell import CellResult, datasets_of, settings_digest, unfinished
from vesper.study.folder import Study, open_folder
from vesper.study.measure import MEASURES, Measure
from vesper.study.parameter_grid import PlannedCell, plan_cells
from vesper.study.presets import find_grid
from vesper.study.runner import TimeEstimate, format_duration, run_jobs
from vesper.study.sets import DatasetSource, find_sources, make_folders
from vesper.study.study_results import JOURNAL, append_line, merge_journal, read_results
from vesper.study.worker import Job

MERGE_EVERY = 50
"""Number of finished cells after which the journal is merged into the table."""


@dataclass(frozen=True, kw_only=True)
class StudyRequest:
    """Options of `vesper study run`."""

    study: str
    """Name of a preset, or path of a TOML file."""
    out: Path
    small: bool = False
    data: Path | None = None
    workers: int = 1
    seeds: int | None = None
    limit: float = 4 * 3600.0
    """Most seconds that a cell may take."""


def run_study(
    request: StudyRequest,
    *,
    measures: Mapping[str, Measure] = MEASURES,
    progress: Progress = no_progress,
) -> list[CellResult]:
    """Run all cells without a result; return the results of cells that failed or were stopped.

    Args:
        request: what to run, and where.
        measures: functions that measure a cell, by the names that grids use.
        progress: receives progress reports.

    Raises:
        InputError: the request is invalid; nothing was started.
        VesperError: the folder cannot be written; finished cells are kept.
    """
    name, grid = find_grid(request.study)
    for option, number in (("--workers", request.workers), ("--seeds", request.seeds)):
        if number is not None and number < 1:
            raise InputError(f"{option}: expected 1 or more, got {number}")
    default = grid.small.seeds if request.small else grid.seeds
    seeds = request.seeds or default
    sources = find_sources(grid.datasets, data=request.data, small=request.small)
    planned = plan_cells(grid, sources, seeds=seeds, small=request.small)
    for each in planned:
        if each.measure not in measures:
            hint = suggest_key(each.measure, list(measures))
            raise InputError(f"grid: unknown measure '{each.measure}'{hint}")
    lines = {key: str(source) for key, source in sources.items()}
    study = Study(name=name, small=request.small, grid=grid, seeds=seeds, sources=lines)
    try:
        with open_folder(request.out, study):
            return _run(request, planned, sources, measures, progress)
    except OSError as error:
        raise VesperError(
            f"{request.out}: cannot be written ({error.strerror or error}); free some space, then "
            f"continue with the same command"
        ) from None


def _run(
    request: StudyRequest,
    planned: list[PlannedCell],
    sources: Mapping[str, DatasetSource],
    measures: Mapping[str, Measure],
    progress: Progress,
) -> list[CellResult]:
    """Run all cells without a result, in a folder that this process has locked."""
    lines = read_results(request.out)
    settings = {each.cell: settings_digest(each.config) for each in planned}
    missing = set(unfinished(settings, lines, settings=settings, limit=request.limit))
    to_do = [each for each in planned if each.cell in missing]
    folders = {
        name: make_folders(sources[name], request.out / "data", progress=progress)
        for name in datasets_of([each.cell for each in to_do])
    }
    jobs = [
        Job(
            cell=each.cell,
            config=each.config,
            folder=folders[each.cell.dataset],
            measure=each.measure,
            measure_function=measures[each.measure],
        )
        for each in to_do
    ]
    failed, expected, started = [], TimeEstimate(lines), monotonic()
    left = dict.fromkeys(each.cell for each in to_do)
    try:
        progress("cells", len(planned) - len(left), len(planned))
        with closing(
            run_jobs(jobs, workers=request.workers, limit=request.limit, work=request.out)
        ) as running:
            for line in running:
                append_line(request.out / JOURNAL, line)
                expected.add_result(line)
                del left[line.cell]
                if not line.is_measured:
                    failed.append(line)
                remaining = format_duration(expected.left(left, elapsed=monotonic() - started))
                note = f"{remaining} left; {outcome(line)}"
                progress("cells", len(planned) - len(left), len(planned), note)
                if len(left) % MERGE_EVERY == 0:
                    merge_journal(request.out)
    finally:
        merge_journal(request.out)
    return failed


def outcome(line: CellResult) -> str:
    """Describe the result of a cell in one line."""
    if line.failed:
        return f"{line.cell}: FAILED, {line.failed}"
    if line.limit is not None:
        return f"{line.cell}: stopped after {line.limit:g} s"
    value = f"{line.metric} {line.test:.2f}" if line.test is not None else line.metric
    return f"{line.cell}: {value} in {line.seconds:.0f} s"
