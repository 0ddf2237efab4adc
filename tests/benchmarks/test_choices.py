"""Test nodes are never read, and the page summarizes the result lines."""

from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.choices import RULES, Decisions, Result, split_validation_nodes, text_of
from benchmarks.choices_page import by_rule, held_out, table

from vesper.method.certified import message_content
from vesper.method.certified.message_content import PartSums, choose_content
from vesper.method.certified.probe_size import PartLengths


def labels(val: int = 10) -> pa.Table:
    split = ["train"] * 3 + ["val"] * val + ["test"] * 4
    ids = np.arange(len(split))
    return pa.table({"id": ids, "label": ids % 2, "split": pa.array(split).dictionary_encode()})


def test_test_nodes_are_replaced_by_half_of_the_validation_nodes() -> None:
    table, made = labels(), split_validation_nodes(labels())
    before = dict(zip(table["id"].to_pylist(), table["split"].to_pylist(), strict=True))
    after = dict(zip(made["id"].to_pylist(), made["split"].to_pylist(), strict=True))
    assert all(before[node] != "test" for node in after)
    assert sum(split == "test" for split in after.values()) == 5
    assert all(before[node] == "val" for node, split in after.items() if split == "test")
    assert sum(split == "train" for split in after.values()) == 3
    assert made.schema.names == table.schema.names


def line(
    *, validation: list[float], held: list[float], error: float = 1.0, content: str = "classes, 0.3"
) -> Result:
    proposed = {"as built": "classes, 0.3", "0 errors": "features, 0.6"}
    return Result("a", 1.0, 0, content, proposed, validation, held, error, "code")


def test_a_later_stage_is_chosen_if_it_leads_by_the_margin() -> None:
    run = line(validation=[80.0, 80.9, 80.5], held=[70.0, 71.0, 72.0])
    assert held_out(run, 0.0) == 71.0
    assert held_out(run, 0.75) == 71.0
    assert held_out(run, 1.0) == 70.0


def test_a_stage_without_a_lead_is_not_chosen_however_small_the_error() -> None:
    run = line(validation=[80.0, 80.0], held=[70.0, 71.0], error=0.0)
    assert held_out(run, 0.0) == 70.0


def test_each_rule_is_assigned_the_run_with_its_content() -> None:
    contents = ("classes, 0.3", "features, 0.6")
    lines = [line(validation=[1.0, 2.0], held=[3.0, 4.0], content=each) for each in contents]
    assert by_rule(lines, "as built")["a", 1.0, 0].content == "classes, 0.3"
    assert by_rule(lines, "0 errors")["a", 1.0, 0].content == "features, 0.6"


def test_the_table_has_differences_from_the_built_in_margin() -> None:
    cell = ("a", 1.0, 0)
    rows = list(table({"0": {cell: 70.0}, "1": {cell: 71.5}}, built_in="0", head="margin"))
    assert rows[0] == "| margin | 1 | all | against built in |"
    assert rows[-1] == "| 1 | 71.50 | 71.50 | +1.50 ± 0.00 |"


def test_a_run_uses_the_built_in_content_unless_a_rule_is_forced() -> None:
    rng = np.random.default_rng(0)
    sign = np.where(np.arange(2000) % 2 == 0, 1.0, -1.0)
    rest = np.column_stack([sign, -sign])
    degree = rng.normal(size=(2000, 1)) + 0.3 * sign[:, None]
    others = (rng.normal(size=(2000, width)) for width in (2, 8))
    sums = PartSums(degree=degree, classes=next(others), features=next(others), noise_std=1.0)
    arguments: dict[str, Any] = {
        "lengths": PartLengths.for_share(0.1),
        "next_noise_std": 0.5,
        "default_share": 0.3,
    }
    built_in, decisions = choose_content(rest, sums, **arguments), Decisions()
    assert decisions.choose(rest, sums, **arguments).degree_share == built_in.degree_share > 0.3
    assert decisions.content == text_of(built_in)
    assert decisions.proposed is not None
    assert list(decisions.proposed) == list(RULES)
    assert decisions.proposed["always the default"] == "classes, 0.3"
    forced = Decisions(forced_rule="always the default")
    assert forced.choose(rest, sums, **arguments).degree_share == 0.3
    assert message_content.LEAD_ERRORS < 1, "constants are restored"
