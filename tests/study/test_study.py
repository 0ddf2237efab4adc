"""A study resumes where it was stopped and reports cells without a result."""

import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vesper.errors import InputError, VesperError
from vesper.study.cell import CellResult
from vesper.study.measure import Measure
from vesper.study.study import StudyRequest, outcome, run_study
from vesper.study.study_results import JOURNAL, append_line, read_results
from vesper.study.worker import Job

MakeJob = Callable[[str, int], Job]

GRID = """
title = "Tiny"
datasets = ["tiny"]
seeds = 2
[[grid]]
measure = "quick"
epsilon = [1, 4]
"""


@pytest.fixture
def study_request(tmp_path: Path) -> StudyRequest:
    (tmp_path / "sets" / "tiny" / "data").mkdir(parents=True)
    (tmp_path / "tiny.toml").write_text(GRID)
    return StudyRequest(
        study=str(tmp_path / "tiny.toml"), out=tmp_path / "out", data=tmp_path / "sets", workers=1
    )


def test_a_full_disk_keeps_finished_cells(
    study_request: StudyRequest, job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    measures: dict[str, Measure] = {"quick": job("quick", 0).measure_function}
    lines: list[CellResult] = []

    def append_two(path: Path, line: CellResult) -> None:
        lines.append(line)
        if len(lines) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        append_line(path, line)

    monkeypatch.setattr("vesper.study.study.append_line", append_two)
    with pytest.raises(VesperError, match=r"out: cannot be written \(No space left on device\)"):
        run_study(study_request, measures=measures)
    assert len(read_results(study_request.out)) == 2
    monkeypatch.undo()
    monkeypatch.syspath_prepend(str(study_request.out.parent / "importable"))
    assert run_study(study_request, measures=measures) == []
    assert len(read_results(study_request.out)) == 4


class Stop(BaseException):
    """Stands for Ctrl-C."""


def test_a_resumed_study_loses_nothing_and_repeats_nothing(
    study_request: StudyRequest, job: MakeJob
) -> None:
    measures: dict[str, Measure] = {"quick": job("quick", 0).measure_function}
    reports: list[int] = []

    def stop_after_two(task: str, done: int, total: int, note: str = "") -> None:
        reports.append(done)
        if done == 2:
            raise Stop

    with pytest.raises(Stop):
        run_study(study_request, measures=measures, progress=stop_after_two)
    results = read_results(study_request.out)
    assert len(results) == 2
    assert not (study_request.out / JOURNAL).exists()
    reports.clear()

    def record(task: str, done: int, total: int, note: str = "") -> None:
        reports.append(done)

    assert run_study(study_request, measures=measures, progress=record) == []
    assert reports == [2, 3, 4]
    assert read_results(study_request.out)[:2] == results
    reports.clear()
    run_study(study_request, measures=measures, progress=record)
    assert reports == [4]
    run_study(replace(study_request, seeds=3), measures=measures, progress=record)
    assert len(read_results(study_request.out)) == 6


def test_failed_cells_are_reported_and_tried_again(
    study_request: StudyRequest, job: MakeJob
) -> None:
    failed = run_study(study_request, measures={"quick": job("wrong", 0).measure_function})
    assert len(failed) == 4
    assert outcome(failed[0]).endswith("FAILED, ValueError: no luck")
    assert run_study(study_request, measures={"quick": job("quick", 0).measure_function}) == []
    assert all(line.is_measured for line in read_results(study_request.out))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": 0}, "--seeds: expected 1 or more, got 0"),
        ({"workers": 0}, "--workers: expected 1 or more, got 0"),
        ({"data": Path("nowhere")}, "--data nowhere: expected a folder"),
        ({"data": None}, "unknown data set 'tiny'"),
        ({}, "unknown measure 'quick'; known are training, degrees"),
    ],
)
def test_mistakes_are_reported_before_anything_starts(
    study_request: StudyRequest, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        run_study(replace(study_request, **change))
    assert not study_request.out.exists()
