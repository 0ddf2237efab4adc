"""The page has one row per step and contains no path of the machine."""

from pathlib import Path

import pytest
from benchmarks.paper_sizes import (
    SETS,
    Result,
    SimulatedSet,
    Step,
    measure_step,
    measure_two_processes,
    page,
    steps_of,
    table,
)


def test_steps_are_user_commands(tmp_path: Path) -> None:
    for dataset in SETS:
        steps = steps_of(dataset, tmp_path, tmp_path / "runs", paper_epochs=2, nodes=0)
        assert [step.name for step in steps] == [
            "tables",
            "read in",
            "certified",
            "paper-gin",
        ]
        assert all(word in steps[3].words for word in ("--preset", dataset.preset, "epochs=2"))


def test_a_measured_step_has_costs_and_a_command_without_paths(tmp_path: Path) -> None:
    dataset = SimulatedSet("finance", "finance", 400)
    tables = steps_of(dataset, tmp_path, tmp_path, paper_epochs=1, nodes=400)[0]
    line = measure_step(dataset, tables)
    assert (tmp_path / "finance" / "data" / "edges.parquet").exists()
    assert line.seconds > 0
    assert line.peak_bytes > 1 << 20
    assert str(tmp_path) not in line.command


def test_both_parties_are_measured_in_separate_processes(tmp_path: Path) -> None:
    dataset = SimulatedSet("finance", "finance", 400)
    measure_step(dataset, steps_of(dataset, tmp_path, tmp_path, paper_epochs=1, nodes=400)[0])
    data, label = measure_two_processes(dataset, tmp_path, tmp_path / "runs")
    assert (data.step, label.step) == ("data party apart", "label party apart")
    assert (tmp_path / "runs" / "finance-apart" / "data" / "ledger.sqlite").exists()
    assert min(data.peak_bytes, label.peak_bytes) > 1 << 20
    assert str(tmp_path) not in data.command + label.command


def test_a_failed_step_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="ended with"):
        measure_step(SETS[0], Step("read in", ("data", "check", str(tmp_path / "none"))))


def test_the_page_has_rows_and_commands_by_step_and_data_set() -> None:
    facts = {
        "metric": "accuracy",
        "test": 61.25,
        "bytes_to_label_party": 2_500_000,
        "bytes_to_data_party": 10**6,
        "noise_std": 2.4,
    }
    first, later = SETS[0].name, SETS[1].name
    lines = [
        Result(later, "tables", "vesper data", 1.0, 2**30),
        Result(first, "v", "c", 9.0, 2**31, facts),
        Result(later, "v", "d", 9.0, 2**31),
    ]
    assert list(table(lines))[2:4] == [
        f"| {later} | tables | 1 | 1.00 |  |  |  |  |",
        f"| {first} | v | 9 | 2.00 | 2.5 | 1.0 | accuracy 61.25 | 2.40 |",
    ]
    written = page(lines, "command")
    assert f"* {later}, tables: `vesper data`" in written
    assert written.index(f"* {first}, v") < written.index(f"* {later}, tables")
