"""Constants of the certified plan, judged without test nodes.

    python -m benchmarks.choices --data ../shared/data            run what is missing, print
    python -m benchmarks.choices --data ../shared/data --write    and keep benchmarks/choices.md

A set without its test nodes: half of its validation nodes choose, the other half, which no run
sees, judge. Runs stand in choices.jsonl; a stopped benchmark goes on there, with the same code.

    margin   errors by which a later stage has to be ahead of the one without edges
    rule     when the trial takes another degree share than the default
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
from benchmarks.kept_lines import keep, lines_in
from benchmarks.page import command, options, publish, say
from benchmarks.utility_cells import datasets_in

from vesper.datasets.loaders.convert import convert
from vesper.method.certified.probe_decision import Pair
from vesper.party.stage_selection import Finished, chosen_stage, error_of_difference
from vesper.session.config import load_config
from vesper.simulation.simulate import simulate
from vesper.simulation.stage0_cache import Begun
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
    "default share": {"better": float("inf")},
    "doubt 0": {"doubt": 0.0},
    "doubt 1": {"doubt": 1.0},
    "as built": {},
    "doubt 3": {"doubt": 3.0},
    "better by 0 %": {"better": 1.0},
    "better by 10 %": {"better": 1.1},
}


@dataclass(frozen=True)
class Line:
    """One run; metrics in percent, a stage each."""

    dataset: str
    epsilon: float
    seed: int
    share: float | None
    """Degree share that was said; None where there was no trial."""
    proposed: dict[str, float]
    """By each rule."""
    validation: list[float]
    held_out: list[float]
    error: float
    """Of the difference between the best later stage and the first."""
    code: str


@dataclass
class Seen:
    """What a run decides on its way, and what it is told to decide."""

    told: float | None = None
    share: float | None = None
    proposed: dict[str, float] | None = None
    error: float = 0.0

    def best(self, pair: Pair, default: float) -> float:
        """In the place of `Pair.best`."""
        self.proposed = {name: BEST(pair, default, **rule) for name, rule in RULES.items()}
        self.share = self.proposed["as built"] if self.told is None else self.told
        return self.share

    def chosen(
        self, finished: Sequence[Finished], rows: Any, evaluate: Any, *, telling: int
    ) -> int:
        """In the place of `chosen_stage`."""
        later = [each.metric for each in finished[1:]]
        best = finished[1 + later.index(max(later))]
        self.error = error_of_difference(best, finished[0], rows, evaluate)
        return chosen_stage(finished, rows, evaluate, telling=telling)


BEST = Pair.best


@contextmanager
def watched(told: float | None) -> Iterator[Seen]:
    """Look at what a run decides; `told`: the degree share it has to take."""
    seen = Seen(told)
    with (
        patch.object(Pair, "best", lambda pair, default: seen.best(pair, default)),
        patch("vesper.party.label_party.chosen_stage", seen.chosen),
    ):
        yield seen


def without_test_nodes(data: Path, work: Path) -> Path:
    """Make party folders in which half of the validation nodes are the test nodes."""
    if not work.exists():
        convert(data, work)
        path = work / "label" / "labels.parquet"
        pq.write_table(halved(pq.read_table(path)), path)
    return work


def halved(labels: pa.Table) -> pa.Table:
    """Leave out test nodes, and call every second validation node, by chance, one."""
    split = np.array(labels["split"].to_pylist(), dtype=object)
    rows = np.random.default_rng(0).permutation(np.flatnonzero(split == "val"))
    kept, split[rows[::2]] = split != "test", "test"
    column = labels.schema.get_field_index("split")
    field = labels.schema.field(column)
    return labels.set_column(column, field, pa.array(split, field.type)).filter(pa.array(kept))


def measured(folder: Path, out: Path, cell: Cell, *, told: float | None) -> Line:
    """Train; what runs have in common, once."""
    dataset, epsilon, seed = cell
    config = load_config(None, {"method": "vesper", "epsilon": epsilon, "seed": seed})
    with watched(told) as seen:
        result = simulate(folder, config, out, begun=Begun(out.parent / "begun"))
    return Line(
        dataset=dataset,
        epsilon=epsilon,
        seed=seed,
        share=seen.share,
        proposed=seen.proposed or {},
        validation=[stage["validation"] for stage in result.stages],
        held_out=[stage["test"] for stage in result.stages],
        error=seen.error,
        code=code_digest(),
    )


def run(data: Path, kept: Path, work: Path, *, sets: Sequence[str], seeds: Sequence[int]) -> None:
    """Run the rule that is built in, then every other share that a rule proposes."""
    outs = (work / f"run{number}" for number in count())
    for dataset, seed, epsilon in product(sets, seeds, EPSILONS):
        folder, cell = without_test_nodes(data / dataset, work / dataset), (dataset, epsilon, seed)
        lines = [line for line in of_this_code(kept) if cell_of(line) == cell]
        if not lines:
            lines.append(measured(folder, next(outs), cell, told=None))
            keep(kept, lines[-1])
            say(f"{dataset}, {epsilon:g}, {seed}: {lines[-1].held_out}")
        for share in set(lines[0].proposed.values()) - {line.share for line in lines}:
            keep(kept, measured(folder, next(outs), cell, told=share))
            say(f"{dataset}, {epsilon:g}, {seed}: degree share {share:g}")


def of_this_code(kept: Path) -> list[Line]:
    """What was measured with the rules as they are now."""
    return [line for line in lines_in(kept, Line) if line.code == code_digest()]


def main() -> None:
    parser = options(__doc__, small="one set and one seed; nothing is kept")
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    asked = parser.parse_args()
    there = [name for name in SETS if name in datasets_in(asked.data)]
    if not there:
        raise SystemExit(f"--data {asked.data}: expected public sets ({', '.join(SETS)}), got none")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        work, kept = Path(folder), HERE / "choices.jsonl"
        if asked.small:
            there, kept = there[:1], work / "choices.jsonl"
        run(asked.data, kept, work, sets=there, seeds=SEEDS[:1] if asked.small else SEEDS)
        text = page(of_this_code(kept), rules=list(RULES), made_with=command(__file__))
    publish(text, __file__, write=asked.write)


if __name__ == "__main__":
    main()
