"""Constants of the certified plan, evaluated without test nodes.

    python -m benchmarks.choices --data ../shared/data            run missing cells, print the page
    python -m benchmarks.choices --data ../shared/data --write    and write benchmarks/choices.md

Test nodes are left out of the data sets. Half of the validation nodes choose as in any run; the
other half, which no run sees, evaluate. Runs are in choices.jsonl; a stopped benchmark resumes
there with the same code.

    margin   lead that a later stage needs over the stage without edges, in standard errors
    rule     when the probe chooses other message content than the default
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
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
from vesper.method.certified import message_content
from vesper.method.certified.evidence import Doubles
from vesper.method.certified.message_content import MessageContent, PartSums, choose_content
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
    "always the default": {"LEAD_ERRORS": 1e9},
    "0 errors": {"LEAD_ERRORS": 0.0},
    "0.5 errors": {"LEAD_ERRORS": 0.5},
    "as built": {},
    "1 error": {"LEAD_ERRORS": 1.0},
    "2 errors": {"LEAD_ERRORS": 2.0},
    "model error 0": {"MODEL_ERROR": 0.0},
    "model error 10 %": {"MODEL_ERROR": 0.1},
}
"""Constants of `message_content`, where a rule has others than those built in."""


@dataclass(frozen=True)
class Result:
    """One run; metrics in percent, one per stage."""

    dataset: str
    epsilon: float
    seed: int
    content: str | None
    """Content of messages and degree share; None where there was no probe."""
    proposed: dict[str, str]
    """Content that each rule would choose."""
    validation: list[float]
    held_out: list[float]
    error: float
    """Standard error of the difference between the best later stage and the first."""
    code: str


@dataclass
class Decisions:
    """Decisions of a run, recorded; `forced_rule` overrides one of them."""

    forced_rule: str = "as built"
    content: str | None = None
    proposed: dict[str, str] | None = None
    error: float = 0.0

    def choose(self, rest: Doubles, sums: PartSums, **arguments: Any) -> MessageContent:
        """Replacement for `choose_content`."""
        contents = {}
        for name, constants in RULES.items():
            with constants_as(constants):
                contents[name] = choose_content(rest, sums, **arguments)
        self.proposed = {name: text_of(content) for name, content in contents.items()}
        self.content = self.proposed[self.forced_rule]
        return contents[self.forced_rule]

    def chosen(
        self, finished: Sequence[StageResult], rows: Any, evaluate: Any, *, effective_rows: int
    ) -> int:
        """Replacement for `select_stage`."""
        later = [each.metric for each in finished[1:]]
        best = finished[1 + later.index(max(later))]
        self.error = error_of_difference(best, finished[0], rows, evaluate)
        return select_stage(finished, rows, evaluate, effective_rows=effective_rows)


@contextmanager
def constants_as(constants: dict[str, float]) -> Iterator[None]:
    """Replace constants of `message_content`."""
    with ExitStack() as stack:
        for name, value in constants.items():
            stack.enter_context(patch.object(message_content, name, value))
        yield


def text_of(content: MessageContent) -> str:
    """Content and degree share, for a line of results."""
    kind = "relay" if content.relay else "classes" if content.projection is None else "features"
    return f"{kind}, {content.degree_share:g}"


@contextmanager
def record_decisions(forced_rule: str) -> Iterator[Decisions]:
    """Record the decisions of a run; `forced_rule` chooses the content of its messages."""
    decisions = Decisions(forced_rule)
    with (
        patch("vesper.method.certified.probe_decision.choose_content", decisions.choose),
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


def measure(folder: Path, out: Path, cell: Cell, *, forced_rule: str = "as built") -> Result:
    """Train; runs with an equal stage 0 compute it once."""
    dataset, epsilon, seed = cell
    config = load_config(None, {"method": "certified", "epsilon": epsilon, "seed": seed})
    with record_decisions(forced_rule) as decisions:
        result = simulate(folder, config, out, stage0_cache=Stage0Cache(out.parent / "stage-0"))
    return Result(
        dataset=dataset,
        epsilon=epsilon,
        seed=seed,
        content=decisions.content,
        proposed=decisions.proposed or {},
        validation=[stage["validation"] for stage in result.stages],
        held_out=[stage["test"] for stage in result.stages],
        error=decisions.error,
        code=code_digest(),
    )


def run(
    data: Path, results_path: Path, work: Path, *, sets: Sequence[str], seeds: Sequence[int]
) -> None:
    """Run the built-in rule, then every other content that a rule proposes."""
    outs = (work / f"run{number}" for number in count())
    for dataset, seed, epsilon in product(sets, seeds, EPSILONS):
        folder, cell = without_test_nodes(data / dataset, work / dataset), (dataset, epsilon, seed)
        lines = [line for line in of_this_code(results_path) if cell_of(line) == cell]
        if not lines:
            lines.append(measure(folder, next(outs), cell))
            append_result(results_path, lines[-1])
            log(f"{dataset}, {epsilon:g}, {seed}: {lines[-1].held_out}")
        for rule, content in lines[0].proposed.items():
            if content not in {line.content for line in lines}:
                lines.append(measure(folder, next(outs), cell, forced_rule=rule))
                append_result(results_path, lines[-1])
                log(f"{dataset}, {epsilon:g}, {seed}: {rule}: {content}")


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
