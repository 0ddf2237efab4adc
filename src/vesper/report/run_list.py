"""Runs below a folder: those of simulations, and both sides of runs between parties.

    RunLine    one run: name, method, metric, guarantee, date, and whether it has finished

A folder counts if it has a journal, a result or a party's contract. A run that cannot be read is
listed with the reason, so that one damaged file does not hide the others.
"""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vesper.errors import InputError
from vesper.report.contents import metric_label
from vesper.report.html import UNKNOWN, lines_table, number
from vesper.report.live_run import RunStatus, read_run_status
from vesper.report.privacy import Privacy
from vesper.report.run_naming import run_name
from vesper.report.sections import moment
from vesper.session.journal import JOURNAL

MARKS = (JOURNAL, "result.json", "contract.json")
UNREADABLE = "not readable"


@dataclass(frozen=True, kw_only=True)
class RunLine:
    """One run; None stands for what is not known, or not known to this side."""

    folder: str
    """Path from the folder that was searched."""
    name: str
    state: str
    """`not started`, `running`, `finished`, `failed`, `lost` or `not readable`."""
    side: str | None = None
    """`data`, `label`, or `both` for a simulation."""
    data: str | None = None
    method: str | None = None
    metric: str | None = None
    validation: float | None = None
    test: float | None = None
    guarantee: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    spent_epsilon: float | None = None
    date: float | None = None
    """When the run started, in seconds since 1970."""
    problem: str | None = None
    """Why the run cannot be read."""

    def as_json(self) -> dict[str, Any]:
        """Return all fields, with the date as people write it."""
        return {**vars(self), "date": None if self.date is None else moment(self.date)}


def guarantee_of(privacy: Privacy) -> str:
    """Name the kind of guarantee in a word or two, for tables.

    >>> from vesper.method.base import NoisePlan
    >>> from vesper.report.privacy import privacy_of
    >>> noise_plan = NoisePlan(
    ...     plan="certified", certified_epsilon=4.0, claimed_epsilon=None, delta=1e-6, noise_stds=()
    ... )
    >>> guarantee_of(
    ...     privacy_of(noise_plan, has_secure_noise=False, covers="", run_charges=None)
    ... )
    'simulated noise'
    """
    if privacy.kind == "edge-free":
        return "no edge is read"
    if privacy.kind == "certified":
        return "certified" if privacy.is_private else "simulated noise"
    return "not private" if stated_epsilon(privacy) is None else "claimed"


def stated_epsilon(privacy: Privacy) -> float | None:
    """Return the epsilon that is certified, simulated or claimed; None if there is none."""
    epsilon = privacy.epsilon if privacy.kind != "paper" else privacy.claimed_epsilon
    if epsilon is None or not math.isfinite(epsilon):
        epsilon = privacy.claimed_epsilon
    return epsilon if epsilon is not None and math.isfinite(epsilon) else None


def find_runs(root: Path) -> list[RunLine]:
    """List the runs below a folder, and the folder itself, in order of their paths.

    Raises:
        InputError: there is no such folder.
    """
    if not root.is_dir():
        raise InputError(f"{root}: expected a folder with runs, found no such folder")
    return [_line_of(folder, root) for folder in _run_folders(root)]


def runs_table(lines: Sequence[RunLine]) -> str:
    """Render one line per run, as HTML."""
    return lines_table(dict(zip(COLUMNS, zip(*map(cells_of, lines), strict=True), strict=True)))


COLUMNS = ("run", "state", "side", "method", "metric", "epsilon", "guarantee", "data", "date")
"""Columns of tables, in the order of `cells_of`."""


def cells_of(line: RunLine) -> tuple[str, ...]:
    """Return the cells of a run for tables."""
    value = line.validation if line.test is None else line.test
    split = "validation" if line.test is None else "test"
    metric = UNKNOWN
    if value is not None and line.metric is not None:
        metric = f"{metric_label(line.metric)} {value:.1f} % ({split})"
    return (
        line.folder,
        line.state,
        line.side or UNKNOWN,
        line.method or UNKNOWN,
        metric,
        number(line.epsilon, "g"),
        line.guarantee or UNKNOWN,
        line.data or UNKNOWN,
        UNKNOWN if line.date is None else moment(line.date),
    )


def _run_folders(root: Path) -> Iterator[Path]:
    """Yield folders of runs; what is inside one belongs to it. Links are not followed."""
    for place, folders, files in os.walk(root):
        folders.sort()
        has_result = "result" in folders and (Path(place) / "result" / "result.json").is_file()
        if has_result or any(mark in files for mark in MARKS):
            folders.clear()
            yield Path(place)
        # A simulation that lasts is in a hidden folder; other hidden ones hold no runs.
        folders[:] = [f for f in folders if not f.startswith(".") or ".partial-" in f]


def _line_of(folder: Path, root: Path) -> RunLine:
    shown, name = folder.relative_to(root).as_posix(), run_name(folder)
    try:
        status = read_run_status(folder)
    except InputError as error:
        return RunLine(folder=shown, name=name, state=UNREADABLE, problem=str(error))
    return _line_of_status(status, shown, name)


def _line_of_status(status: RunStatus, folder: str, name: str) -> RunLine:
    journal, contents, privacy = status.journal, status.contents, status.privacy
    charges = status.run_charges
    side = None if journal is None else journal.side
    return RunLine(
        folder=folder,
        name=name,
        state=status.state,
        side=side,
        data=None if contents is None else contents.data or None,
        method=None if status.config is None else status.config.run.method,
        metric=None if contents is None else contents.metric,
        validation=None if contents is None else contents.validation,
        test=None if contents is None else contents.test,
        guarantee=None if privacy is None else guarantee_of(privacy),
        epsilon=None if privacy is None else stated_epsilon(privacy),
        delta=None if privacy is None else privacy.delta,
        spent_epsilon=None if charges is None else charges.spent_epsilon,
        date=None if journal is None else journal.started_at,
    )
