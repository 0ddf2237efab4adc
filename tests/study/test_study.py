"""A study is gone on with where it was stopped, and says what has no result."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vesper.errors import InputError
from vesper.study.measure import Measure
from vesper.study.study import StudyRequest, outcome, run_study
from vesper.study.study_results import JOURNAL, read_results
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
def asked(tmp_path: Path) -> StudyRequest:
    (tmp_path / "sets" / "tiny" / "data").mkdir(parents=True)
    (tmp_path / "tiny.toml").write_text(GRID)
    return StudyRequest(
        study=str(tmp_path / "tiny.toml"), out=tmp_path / "out", data=tmp_path / "sets", workers=1
    )


class Stop(BaseException):
    """Ctrl-C, as the command line has it."""


def test_a_stopped_study_loses_nothing_and_repeats_nothing(
    asked: StudyRequest, job: MakeJob
) -> None:
    measures: dict[str, Measure] = {"quick": job("quick", 0).measure_function}
    told: list[int] = []

    def stop_after_two(task: str, done: int, total: int, note: str = "") -> None:
        told.append(done)
        if done == 2:
            raise Stop

    with pytest.raises(Stop):
        run_study(asked, measures=measures, progress=stop_after_two)
    kept = read_results(asked.out)
    assert len(kept) == 2
    assert not (asked.out / JOURNAL).exists()
    told.clear()

    def listen(task: str, done: int, total: int, note: str = "") -> None:
        told.append(done)

    assert run_study(asked, measures=measures, progress=listen) == []
    assert told == [2, 3, 4]
    assert read_results(asked.out)[:2] == kept
    told.clear()
    run_study(asked, measures=measures, progress=listen)
    assert told == [4]
    run_study(replace(asked, seeds=3), measures=measures, progress=listen)
    assert len(read_results(asked.out)) == 6


def test_what_failed_is_told_and_tried_again(asked: StudyRequest, job: MakeJob) -> None:
    failed = run_study(asked, measures={"quick": job("wrong", 0).measure_function})
    assert len(failed) == 4
    assert outcome(failed[0]).endswith("FAILED, ValueError: no luck")
    assert run_study(asked, measures={"quick": job("quick", 0).measure_function}) == []
    assert all(line.is_measured for line in read_results(asked.out))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seeds": 0}, "--seeds: expected 1 or more, got 0"),
        ({"workers": 0}, "--workers: expected 1 or more, got 0"),
        ({"data": Path("nowhere")}, "--data nowhere: expected a folder"),
        ({"data": None}, "unknown data set 'tiny'"),
        ({}, "unknown measure 'quick'; known are training, degrees"),
    ],
)
def test_mistakes_are_named_before_anything_is_begun(
    asked: StudyRequest, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        run_study(replace(asked, **change))
    assert not asked.out.exists()
