"""The cells of the utility table and their order."""

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.utility_cells import all_cells, config_of, datasets_in

from vesper.study.cell import Cell
from vesper.study.study_results import read_lines

STORED = Path(__file__).parents[2] / "benchmarks" / "utility.jsonl"


def test_small_data_sets_come_first(tmp_path: Path) -> None:
    for name, rows in {"a_large": 9, "b_small": 2}.items():
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"id": range(rows)}), tmp_path / name / "nodes.parquet")
    (tmp_path / "README").write_text("no data set")
    assert datasets_in(tmp_path) == {"b_small": 2, "a_large": 9}


def test_cells_are_ordered_by_seed_and_edge_free_methods_run_once() -> None:
    cells = all_cells(["small", "large"], ["certified", "mlp"], [1.0, 4.0], [0, 1])
    assert len(cells) == len(set(cells)) == 2 * 2 * 3
    assert [cell.seed for cell in cells] == [0] * 6 + [1] * 6
    assert [cell.dataset for cell in cells[:6]] == ["small"] * 3 + ["large"] * 3
    assert {cell.epsilon for cell in cells if cell.method == "mlp"} == {math.inf}
    assert {cell.epsilon for cell in cells if cell.method == "certified"} == {1.0, 4.0}


def test_methods_that_are_equal_without_noise_are_not_run_twice() -> None:
    cells = all_cells(["small"], ["paper-gin", "gin", "lapgraph"], [1.0, math.inf], [0])
    assert [(cell.method, cell.epsilon) for cell in cells] == [
        ("gin", math.inf),
        ("paper-gin", 1.0),
        ("lapgraph", 1.0),
    ]


def test_sampling_methods_use_fixed_batches_on_large_data_sets() -> None:
    def batch_size(dataset: str, method: str, **overrides: int) -> int | None:
        return config_of(Cell(dataset, method, 1.0, 0), overrides).run.batch_size

    assert batch_size("ieee_cis", "vfgnn") == 8192
    assert batch_size("ieee_cis", "vfgnn", batch_size=64) == 64
    assert batch_size("ieee_cis", "certified") is None
    assert batch_size("cora", "vfgnn") is None


def test_stored_results_can_be_read() -> None:
    lines = STORED.read_text().splitlines()
    assert 0 < len(read_lines(STORED)) <= len(lines)
    assert all(line.is_measured or line.failed or line.limit for line in read_lines(STORED))
