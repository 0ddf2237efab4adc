"""The trials: scenarios with their variants, drawn from a seed, run one after another."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random

from chaos.align_trials import run_align
from chaos.command_trials import run_command
from chaos.file_trials import READERS, run_file
from chaos.lab import TrialPlace
from chaos.party_trials import METHODS, run_party, run_several
from chaos.processes import Processes
from chaos.ray_trials import run_ray
from chaos.serving_trials import run_serving
from chaos.trial import FailedError, Report, SkippedError, Trial, TrialResult
from chaos.verbs import VERBS


@dataclass(frozen=True)
class Scenario:
    """Something to run in several variants."""

    run: Callable[[Processes, TrialPlace], None]
    variants: tuple[str, ...]
    weight: int
    """How many of the trials of one round are of this scenario."""


SCENARIOS = {
    "two parties": Scenario(run_party, tuple(METHODS), 14),
    "several parties": Scenario(run_several, ("certified", "certified-labels", "gap", "mlp"), 2),
    "alignment": Scenario(run_align, ("plain", "private"), 2),
    "snapshot": Scenario(run_serving, ("answered and queried",), 4),
    "verb": Scenario(run_command, tuple(VERBS), 7),
    "file": Scenario(run_file, tuple(READERS), 7),
    "Ray": Scenario(run_ray, ("worker", "driver", "interrupt"), 1),
}


def trials_of(seed: int, *, only: Sequence[str] = ()) -> Iterator[Trial]:
    """Yield trials without end; each round has all scenarios by weight, in an order of its own."""
    numbers = count()
    for turn in count():
        names = [name for name, each in SCENARIOS.items() for _ in range(each.weight)]
        order = Random(f"order {seed} {turn}")
        order.shuffle(names)
        next_variant = {
            name: turn * each.weight + order.randrange(each.weight)
            for name, each in SCENARIOS.items()
        }
        for name in names:
            variants = SCENARIOS[name].variants
            variant = variants[next_variant[name] % len(variants)]
            next_variant[name] += 1
            number = next(numbers)
            if not only or name in only:
                yield Trial(seed, number, name, variant)


def run_trial(processes: Processes, trial: Trial, shared: Path) -> TrialResult:
    """Run one trial; its folder is kept if it fails."""
    began, report = time.monotonic(), Report()
    folder = Path(tempfile.mkdtemp(prefix=f"trial-{trial.number}-", dir=shared))
    place = TrialPlace(folder / "files", trial.variant, trial.chance, report, shared)
    outcome, detail = "held", ""
    try:
        SCENARIOS[trial.scenario].run(processes, place)
    except SkippedError as error:
        outcome, detail = "skipped", str(error)
    except FailedError as error:
        outcome, detail = "failed", f"{folder}: {error}"
    finally:
        processes.end_all()
    if outcome != "failed":
        shutil.rmtree(folder, ignore_errors=True)
    return TrialResult(
        seed=trial.seed,
        number=trial.number,
        scenario=trial.scenario,
        variant=trial.variant,
        outcome=outcome,
        faults=report.faults,
        codes=report.codes,
        seconds=round(time.monotonic() - began, 1),
        detail=detail,
    )
