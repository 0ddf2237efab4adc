"""The documented walks match what runs, and visit few enough files for a reader to follow.

`docs/how-a-run-works.md` lists, in order, the files that one stage and one batch enter. The same
tasks run here with a profiler, and the page must agree, file by file.
"""

import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.fixtures.observers import CallingObserver
from tests.fixtures.walks import UntilFirstStep, Walk

from vesper.deployment.data_process import run_data_party
from vesper.deployment.label_process import run_label_party

if TYPE_CHECKING:
    from tests.fixtures.both_parties import Both
    from tests.fixtures.finished_run import FinishedRun

PAGE = (Path(__file__).parents[2] / "docs" / "how-a-run-works.md").read_text()
BUDGETS = {"batch": 20, "release": 24, "stage": 44, "predict": 68, "resume": 107}
"""Largest number of files that a task may enter, over all threads and both parties."""


def listed(heading: str) -> list[str]:
    """The files that a section of the page lists, in order."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([\w/]+\.py)` \|", section, flags=re.MULTILINE)


def stated_count(task: str) -> int:
    """The number of files that the page states for a task."""
    found = re.search(rf"^\| {task} \|.* \| (\d+) \| (\d+) \|$", PAGE, flags=re.MULTILINE)
    assert found, task
    assert int(found[2]) == BUDGETS[task]
    return int(found[1])


def test_the_page_shows_the_files_of_one_stage(training_walks: dict[str, Walk]) -> None:
    assert listed("One stage") == training_walks["stage"].files


@pytest.mark.parametrize("side", ["data", "label"])
def test_the_page_shows_the_files_of_one_batch(training_walks: dict[str, Walk], side: str) -> None:
    assert listed(f"One batch, {side} party") == training_walks[f"batch 1 {side}"].files


def test_the_files_of_a_release_are_part_of_a_stage(training_walks: dict[str, Walk]) -> None:
    assert set(training_walks["release"].files) < set(training_walks["stage"].files)


def test_a_stage_a_release_and_a_batch_stay_within_their_budgets(
    training_walks: dict[str, Walk],
) -> None:
    for stage in (0, 1):
        sides = (training_walks[f"batch {stage} {side}"].files for side in ("data", "label"))
        assert len(set().union(*sides)) == stated_count("batch") <= BUDGETS["batch"]
    for task in ("release", "stage"):
        assert len(training_walks[task].files) == stated_count(task) <= BUDGETS[task]


def test_predicting_stays_within_its_budget(finished: "FinishedRun") -> None:
    """Both parties, from their saved runs to predictions."""
    with finished.open_predictor() as predictor:  # once without recording
        predictor.predict(finished.ids[:5], limit=20)
    walk = Walk()
    threading.setprofile(walk.profile)
    try:
        with walk.recording(), finished.open_predictor() as predictor:
            predictor.predict(finished.ids[5:10], limit=20)
    finally:
        threading.setprofile(None)
    assert len(walk.files) <= stated_count("predict") <= BUDGETS["predict"], walk.files


def test_resuming_stays_within_its_budget(both: "Both") -> None:
    """Both parties, after both were stopped in stage 1, from `--resume` to the next batch."""
    data, label = both.configs()

    def stop(task: str, done: int, total: int, note: str = "") -> None:
        if task == "training" and done == 14:
            raise KeyboardInterrupt

    for side in both.run(data, label, observer=CallingObserver(progress=stop)):
        side.exception()
    walks = Walk(), Walk()

    def resume_data() -> None:
        with walks[0].recording():
            run_data_party(data, resume=True, observer=UntilFirstStep(walks[0]))

    def resume_label() -> None:
        with walks[1].recording():
            run_label_party(label, resume=True, observer=UntilFirstStep(walks[1]))

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(resume_data), pool.submit(resume_label)]:
            future.result()
    assert sys.getprofile() is None
    files = set(walks[0].files) | set(walks[1].files)
    assert len(files) <= stated_count("resume") <= BUDGETS["resume"], sorted(files)
