"""Constants of the certified plan, evaluated without test nodes.

    python -m benchmarks.choices --data ../shared/data            run missing cells, print the page
    python -m benchmarks.choices --data ../shared/data --write    and write benchmarks/choices.md

Test nodes are left out of the data sets. Half of the validation nodes choose as in any run; the
other half, which no run sees, evaluate. Runs are in choices.jsonl; a stopped benchmark resumes
there with the same code.

    margin   lead that a later stage needs over the stage without edges, in standard errors
    rule     when the probe chooses another degree share than the default
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from benchmarks.choices_page import Cell, cell_of, page
from benchmarks.page import command, log, options, publish
from benchmarks.result_lines import append_result, read_results
from benchmarks.utility_cells import datasets_in

from vesper.datasets.loaders.convert import convert
from vesper.method.certified.probe_decision import DegreeTradeOff
from vesper.party.stage_selection import StageResult, error_of_difference, select_stage
from vesper.session.config import load_config
from vesper.simulation.simulate import simulate
from vesper.simulation.stage0_cache import Stage0Cache
from vesper.study.worker import code_digest

HERE = Path(__file__).parent
SETS = (
    "cora",
    "amazon_computers",
    "fb100_cornell",
    "pubmed",
    "amlsim_20k",
    "facebook_pages",
    "yelpchi_reviews",
    "s_ffsd",
)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
SEEDS = (0, 1, 2)
RULES: dict[str, dict[str, float]] = {
    "default share": {"min_gain": float("inf")},
    "doubt 0": {"doubt": 0.0},
    "doubt 1": {"doubt": 1.0},
    "as built": {},
    "doubt 3": {"doubt": 3.0},
    "better by 0 %": {"min_gain": 1.0},
    "better by 10 %": {"min_gain": 1.1},
}


@dataclass(frozen=True)
class Result:
    """One run; metrics in percent, one per stage."""

    dataset: str
    epsilon: float
    seed: int
    share: float | None
    """Degree share that messages had; None where there was no probe."""
    proposed: dict[str, float]
    """Degree share that each rule would choose."""
    validation: list[float]
    held_out: list[float]
    error: float
    """Standard error of the difference between the best later stage and the first."""
    code: str


@dataclass
class Decisions:
    """Decisions of a run, recorded; `forced_share` overrides one of them."""

    forced_share: float | None = None
    share: float | None = None
    proposed: dict[str, float] | None = None
    error: float = 0.0

    def best(self, pair: DegreeTradeOff, default: float) -> float:
        """Replacement for `DegreeTradeOff.best_share`."""
        self.proposed = {name: BEST(pair, default, **rule) for name, rule in RULES.items()}
        self.share = self.proposed["as built"] if self.forced_share is None else self.forced_share
        return self.share

    def chosen(
        self, finished: Sequence[StageResult], rows: Any, evaluate: Any, *, effective_rows: int
    ) -> int:
        """Replacement for `select_stage`."""
        later = [each.metric for each in finished[1:]]
        best = finished[1 + later.index(max(later))]
        self.error = error_of_difference(best, finished[0], rows, evaluate)
        return select_stage(finished, rows, evaluate, effective_rows=effective_rows)


BEST = DegreeTradeOff.best_share


@contextmanager
def record_decisions(forced_share: float | None) -> Iterator[Decisions]:
    """Record the decisions of a run; `forced_share` is the degree share it has to use."""
    decisions = Decisions(forced_share)
    with (
        patch.object(
            DegreeTradeOff, "best_share", lambda pair, default: decisions.best(pair, default)
        ),
        patch("vesper.party.label_party.select_stage", decisions.chosen),
    ):
        yield decisions


def without_test_nodes(data: Path, work: Path) -> Path:
    """Make party folders in which half of the validation nodes become the test nodes."""
    if not work.exists():
        convert(data, work)
        path = work / "label" / "labels.parquet"
        pq.write_table(split_validation_nodes(pq.read_table(path)), path)
    return work


def split_validation_nodes(labels: pa.Table) -> pa.Table:
    """Remove test nodes, and turn a random half of the validation nodes into test nodes."""
    split = np.array(labels["split"].to_pylist(), dtype=object)
    rows = np.random.default_rng(0).permutation(np.flatnonzero(split == "val"))
    is_used, split[rows[::2]] = split != "test", "test"
    column = labels.schema.get_field_index("split")
    field = labels.schema.field(column)
    return labels.set_column(column, field, pa.array(split, field.type)).filter(pa.array(is_used))


def measure(folder: Path, out: Path, cell: Cell, *, forced_share: float | None) -> Result:
    """Train; runs with an equal stage 0 compute it once."""
    dataset, epsilon, seed = cell
    config = load_config(None, {"method": "certified", "epsilon": epsilon, "seed": seed})
    with record_decisions(forced_share) as decisions:
        result = simulate(folder, config, out, stage0_cache=Stage0Cache(out.parent / "stage-0"))
    return Result(
        dataset=dataset,
        epsilon=epsilon,
        seed=seed,
        share=decisions.share,
        proposed=decisions.proposed or {},
        validation=[stage["validation"] for stage in result.stages],
        held_out=[stage["test"] for stage in result.stages],
        error=decisions.error,
        code=code_digest(),
    )


def run(
    data: Path, results_path: Path, work: Path, *, sets: Sequence[str], seeds: Sequence[int]
) -> None:
    """Run the built-in rule, then every other share that a rule proposes."""
    outs = (work / f"run{number}" for number in count())
    for dataset, seed, epsilon in product(sets, seeds, EPSILONS):
        folder, cell = without_test_nodes(data / dataset, work / dataset), (dataset, epsilon, seed)
        lines = [line for line in of_this_code(results_path) if cell_of(line) == cell]
        if not lines:
            lines.append(measure(folder, next(outs), cell, forced_share=None))
            append_result(results_path, lines[-1])
            log(f"{dataset}, {epsilon:g}, {seed}: {lines[-1].held_out}")
        for share in set(lines[0].proposed.values()) - {line.share for line in lines}:
            append_result(results_path, measure(folder, next(outs), cell, forced_share=share))
            log(f"{dataset}, {epsilon:g}, {seed}: degree share {share:g}")


def of_this_code(results_path: Path) -> list[Result]:
    """Results that were measured with the current code."""
    return [line for line in read_results(results_path, Result) if line.code == code_digest()]


def main() -> None:
    parser = options(__doc__, small="one data set and one seed; nothing is stored")
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    arguments = parser.parse_args()
    datasets = [name for name in SETS if name in datasets_in(arguments.data)]
    if not datasets:
        raise SystemExit(
            f"--data {arguments.data}: expected some of the public data sets {', '.join(SETS)}, "
            f"found none"
        )
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        work, results_path = Path(folder), HERE / "choices.jsonl"
        if arguments.small:
            datasets, results_path = datasets[:1], work / "choices.jsonl"
        run(
            arguments.data,
            results_path,
            work,
            sets=datasets,
            seeds=SEEDS[:1] if arguments.small else SEEDS,
        )
        text = page(of_this_code(results_path), rules=list(RULES), made_with=command(__file__))
    publish(text, __file__, write=arguments.write)


if __name__ == "__main__":
    main()
