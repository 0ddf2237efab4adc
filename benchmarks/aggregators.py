"""The six aggregators of the certified plan, at equal epsilon, on three public data sets.

    python -m benchmarks.aggregators            run missing cells, print the table
    python -m benchmarks.aggregators --write    and write benchmarks/aggregators.md
    python -m benchmarks.aggregators --minutes 30      start no more cells after that time

Measured cells are in aggregators.jsonl, by settings; a stopped run resumes there. All settings
except the aggregator are defaults. The one remaining choice, the degree at which `gcn-clamped`
clamps, is made by validation.
"""

import math
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from time import monotonic
from typing import Any

import torch
from benchmarks.exchange import DATA, party_folder
from benchmarks.page import command, log, machine, options, publish, spread
from benchmarks.result_lines import append_result, read_results

from vesper.method.settings import Config
from vesper.session.config import load_config
from vesper.simulation.simulate import simulate
from vesper.simulation.stage0_cache import Stage0Cache

HERE = Path(__file__).parent
DATASETS = ("fb100_cornell", "facebook_pages", "yelpchi_reviews")
EPSILONS = (1.0, 4.0, math.inf)
SEEDS = 3
CLAMPED = "gcn-clamped"
VARIANTS: tuple[tuple[str, int | None], ...] = (
    ("gin", None),
    ("gcn", None),
    (CLAMPED, 5),
    (CLAMPED, 40),
    ("mean", None),
    ("gat", None),
    ("max", None),
)
"""Aggregator, and the degree at which it clamps; None if it does not."""

NO_EDGES = "no edges"


@dataclass(frozen=True)
class Result:
    """One run: metrics in percent, of the chosen stage and of the stage before any release."""

    dataset: str
    aggregator: str
    min_degree: int | None
    epsilon: str
    seed: int
    settings: str
    metric: str
    validation: float
    test: float
    edge_free_validation: float
    edge_free_test: float


def config_of(aggregator: str, min_degree: int | None, epsilon: float, seed: int) -> Config:
    """Default settings with a given aggregator, epsilon and seed."""
    given: dict[str, Any] = {"aggregator": aggregator, "epsilon": epsilon, "seed": seed}
    if min_degree is not None:
        given["min_degree"] = min_degree
    return load_config(None, given)


def measure(
    dataset: str, folder: Path, config: Config, min_degree: int | None, *, stage0_cache: Stage0Cache
) -> Result:
    with tempfile.TemporaryDirectory() as text:
        result = simulate(folder, config, Path(text) / "run", stage0_cache=stage0_cache)
    return Result(
        dataset=dataset,
        aggregator=config.privacy.aggregator,
        min_degree=min_degree,
        epsilon=f"{config.privacy.epsilon:g}",
        seed=config.run.seed,
        settings=config.contract[:16],
        metric=result.metric,
        validation=result.validation,
        test=result.test,
        edge_free_validation=result.stages[0]["validation"],
        edge_free_test=result.stages[0]["test"],
    )


def best_clamp(lines: Sequence[Result]) -> list[Result]:
    """Select the runs of one cell whose clamp is best on validation; clamps have equal seeds."""
    by_clamp: dict[int | None, list[Result]] = defaultdict(list)
    for line in lines:
        by_clamp[line.min_degree].append(line)
    return max(by_clamp.values(), key=lambda some: mean(line.validation for line in some))


def table(lines: Sequence[Result], epsilons: Sequence[float] = EPSILONS) -> list[str]:
    """One row per data set and aggregator: test at each epsilon, validation in brackets."""
    named = [f"{epsilon:g}" for epsilon in epsilons]
    cells: dict[tuple[str, str, str], list[Result]] = defaultdict(list)
    for line in lines:
        cells[line.dataset, line.aggregator, line.epsilon].append(line)
    rows = [
        f"| data set | metric | aggregator | {' | '.join(f'epsilon {each}' for each in named)} |",
        f"| --- | --- | --- | {' | '.join('---:' for _ in named)} |",
    ]
    aggregators = list(dict.fromkeys(aggregator for aggregator, _ in VARIANTS))
    for dataset in dict.fromkeys(line.dataset for line in lines):
        of_set = [line for line in lines if line.dataset == dataset]
        seeds = {line.seed: line for line in of_set}.values()
        free = _cell(
            [line.edge_free_test for line in seeds], [line.edge_free_validation for line in seeds]
        )
        metric = of_set[0].metric
        rows.append(f"| {dataset} | {metric} | {NO_EDGES} | {' | '.join([free] * len(named))} |")
        for aggregator in aggregators:
            texts = [_text(cells[dataset, aggregator, each]) for each in named]
            rows.append(f"| {dataset} | {metric} | {aggregator} | {' | '.join(texts)} |")
    return rows


def _text(lines: list[Result]) -> str:
    if not lines:
        return "-"
    chosen = best_clamp(lines)
    clamp = chosen[0].min_degree
    text = _cell([line.test for line in chosen], [line.validation for line in chosen])
    return text if clamp is None else f"{text}, m = {clamp}"


def _cell(tests: list[float], validations: list[float]) -> str:
    return f"{spread(tests)} ({mean(validations):.2f}; {len(tests)})"


def page(lines: Sequence[Result], command_line: str) -> str:
    return "\n".join(
        [
            "# Aggregators",
            "",
            f"Command: `{command_line}`. Machine: {machine()}.",
            "Method `certified` with default settings except for `aggregator`; all at the same "
            "epsilon. Test metric in percent, mean and standard deviation over "
            "seeds; in brackets the mean on validation and the number of seeds. Stages, and the "
            f"degree m at which `{CLAMPED}` clamps (5 or 40), are chosen by validation. "
            f"`{NO_EDGES}` is the stage before the first release. With one hop, as for two classes "
            "below epsilon 8, `gcn` has no released degrees yet and equals `gin`.",
            "",
            *table(lines),
            "",
        ]
    )


def main() -> None:
    parser = options(__doc__, small="one data set, one seed, epsilon 4; nothing is stored")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="start no more cells after this time"
    )
    parser.add_argument("--work", type=Path, help="folder for party folders; default: a new one")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    started, results_path = monotonic(), HERE / "aggregators.jsonl"
    lines = [] if arguments.small else read_results(results_path, Result)
    known = {(line.dataset, line.settings) for line in lines}
    datasets, seeds = (DATASETS[:1], 1) if arguments.small else (DATASETS, SEEDS)
    wanted = [  # in the order of seeds, because a run may be stopped at any time
        (seed, epsilon, dataset, aggregator, min_degree)
        for seed in range(seeds)
        for dataset in datasets
        for epsilon in ((4.0,) if arguments.small else EPSILONS)
        for aggregator, min_degree in VARIANTS
    ]
    with tempfile.TemporaryDirectory() as text:
        for seed, epsilon, dataset, aggregator, min_degree in wanted:
            config = config_of(aggregator, min_degree, epsilon, seed)
            if (dataset, config.contract[:16]) in known:
                continue
            if monotonic() - started > 60 * arguments.minutes:
                log("out of time; run the command again to resume")
                break
            folder = party_folder(dataset, arguments.work or Path(text), num_nodes=0)
            if folder is None:
                log(f"skipped {dataset}: no folder {DATA.name}/{dataset} next to the project")
                continue
            stage0_cache = Stage0Cache(Path(text) / "stage-0")
            line = measure(dataset, folder, config, min_degree, stage0_cache=stage0_cache)
            log(f"{dataset} {aggregator} {min_degree or ''} at {epsilon:g}: {line.test:.2f}")
            lines.append(line)
            if not arguments.small:
                append_result(results_path, line)
    publish(page(lines, command(__file__)), __file__, write=arguments.write)


if __name__ == "__main__":
    main()
