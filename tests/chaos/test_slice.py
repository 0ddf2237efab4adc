"""A slice of the chaos suite in every run of the tests, with another seed each day.

A failure prints the seed. `VESPER_CHAOS_SEED=N` repeats it, `python -m chaos --seed N` goes on.
"""

import importlib.util
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest
from chaos.processes import Processes
from chaos.suite import run_trial, trials_of
from chaos.trial import Trial

TRIALS = 24
SLOW = ("Ray", "verb")
"""Left to the whole suite, except for one trial of a verb."""


def slice_of(seed: int) -> list[Trial]:
    """A bounded number of trials, which take about two minutes on two busy cores."""
    quick = (trial for trial in trials_of(seed) if trial.scenario not in SLOW)
    verb = next(trial for trial in trials_of(seed) if trial.scenario == "verb")
    return [*islice(quick, TRIALS - 1), verb]


@pytest.fixture(scope="module")
def seed() -> int:
    """Seed from the environment, or from the date."""
    given = os.environ.get("VESPER_CHAOS_SEED")
    return int(given) if given else int(datetime.now(UTC).strftime("%Y%m%d"))


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    with Processes() as running:
        yield running


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("chaos")


@pytest.mark.parametrize("number", range(TRIALS))
def test_what_is_promised_holds(processes: Processes, shared: Path, seed: int, number: int) -> None:
    trial = slice_of(seed)[number]
    sys.stdout.write(f"VESPER_CHAOS_SEED={seed}, trial {trial}\n")
    if trial.variant == "private" and importlib.util.find_spec("private_set_intersection") is None:
        pytest.skip("needs openmined.psi")
    result = run_trial(processes, trial, shared)
    if result.outcome == "skipped":
        pytest.skip(result.detail)
    assert result.outcome == "held", (result.faults, result.codes, result.detail)


def test_trials_follow_from_the_seed() -> None:
    first, second, other = (list(islice(trials_of(seed), 80)) for seed in (1, 1, 2))
    assert first == second != other
    assert [trial.number for trial in first] == list(range(80))
    assert [trial.chance.random() for trial in first] == [trial.chance.random() for trial in second]
