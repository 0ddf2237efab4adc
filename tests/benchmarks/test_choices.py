"""No test node is read, and the page says what the lines say."""

import numpy as np
import pyarrow as pa
from benchmarks.choices import RULES, Decisions, Result, split_validation_nodes
from benchmarks.choices_page import by_rule, held_out, table

from vesper.method.certified.evidence import ExplainedShare
from vesper.method.certified.probe_decision import DegreeTradeOff


def labels(val: int = 10) -> pa.Table:
    split = ["train"] * 3 + ["val"] * val + ["test"] * 4
    ids = np.arange(len(split))
    return pa.table({"id": ids, "label": ids % 2, "split": pa.array(split).dictionary_encode()})


def test_test_nodes_are_gone_and_half_of_the_validation_nodes_are_in_their_place() -> None:
    table, made = labels(), split_validation_nodes(labels())
    before = dict(zip(table["id"].to_pylist(), table["split"].to_pylist(), strict=True))
    after = dict(zip(made["id"].to_pylist(), made["split"].to_pylist(), strict=True))
    assert all(before[node] != "test" for node in after)
    assert sum(split == "test" for split in after.values()) == 5
    assert all(before[node] == "val" for node, split in after.items() if split == "test")
    assert sum(split == "train" for split in after.values()) == 3
    assert made.schema.names == table.schema.names


def line(
    *, validation: list[float], held: list[float], error: float = 1.0, share: float = 0.3
) -> Result:
    proposed = {"as built": 0.3, "doubt 0": 0.6}
    return Result("a", 1.0, 0, share, proposed, validation, held, error, "code")


def test_a_later_stage_is_taken_when_it_is_ahead_by_the_margin() -> None:
    run = line(validation=[80.0, 80.9, 80.5], held=[70.0, 71.0, 72.0])
    assert held_out(run, 0.0) == 71.0
    assert held_out(run, 0.75) == 71.0
    assert held_out(run, 1.0) == 70.0


def test_a_stage_that_is_not_ahead_is_not_taken_however_small_the_error() -> None:
    run = line(validation=[80.0, 80.0], held=[70.0, 71.0], error=0.0)
    assert held_out(run, 0.0) == 70.0


def test_each_rule_has_the_run_with_its_share() -> None:
    lines = [line(validation=[1.0, 2.0], held=[3.0, 4.0], share=share) for share in (0.3, 0.6)]
    assert by_rule(lines, "as built")["a", 1.0, 0].share == 0.3
    assert by_rule(lines, "doubt 0")["a", 1.0, 0].share == 0.6


def test_the_table_has_differences() -> None:
    cell = ("a", 1.0, 0)
    rows = list(table({"0": {cell: 70.0}, "1": {cell: 71.5}}, built_in="0", head="margin"))
    assert rows[0] == "| margin | 1 | all | against built in |"
    assert rows[-1] == "| 1 | 71.50 | 71.50 | +1.50 ± 0.00 |"


def test_the_rule_as_built_is_that_of_a_run_unless_it_is_told_another() -> None:
    nothing = np.zeros((1, 1))
    degree, other = (
        ExplainedShare(share=share, null_std=0.001, error=0.001, coefficients=nothing, signal=1.0)
        for share in (0.5, 0.001)
    )
    pair = DegreeTradeOff(degree=degree, other=other, both=0.5, degree_gain=1.0, other_gain=1.0)
    seen = Decisions()
    assert seen.best(pair, 0.3) == pair.best_share(0.3) > 0.6
    assert seen.proposed is not None
    assert list(seen.proposed) == list(RULES)
    assert seen.proposed["default share"] == 0.3
    assert Decisions(forced_share=0.45).best(pair, 0.3) == 0.45
