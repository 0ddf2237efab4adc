"""The table has a row for each step, and names no folder of the machine."""

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


def test_steps_are_commands_that_a_user_types(tmp_path: Path) -> None:
    for of in SETS:
        steps = steps_of(of, tmp_path, tmp_path / "runs", paper_epochs=2, nodes=0)
        assert [step.name for step in steps] == [
            "tables",
            "read in",
            "certified",
            "paper-gin",
        ]
        assert all(word in steps[3].words for word in ("--preset", of.preset, "epochs=2"))


def test_a_step_is_measured(tmp_path: Path) -> None:
    of = SimulatedSet("finance", "finance", 400)
    tables = steps_of(of, tmp_path, tmp_path, paper_epochs=1, nodes=400)[0]
    line = measure_step(of, tables)
    assert (tmp_path / "finance" / "data" / "edges.parquet").exists()
    assert line.seconds > 0
    assert line.peak_bytes > 1 << 20
    assert str(tmp_path) not in line.command


def test_two_parties_apart_are_measured_each(tmp_path: Path) -> None:
    of = SimulatedSet("finance", "finance", 400)
    measure_step(of, steps_of(of, tmp_path, tmp_path, paper_epochs=1, nodes=400)[0])
    data, label = measure_two_processes(of, tmp_path, tmp_path / "runs")
    assert (data.step, label.step) == ("data party apart", "label party apart")
    assert (tmp_path / "runs" / "finance-apart" / "data" / "ledger.sqlite").exists()
    assert min(data.peak_bytes, label.peak_bytes) > 1 << 20
    assert str(tmp_path) not in data.command + label.command


def test_a_step_that_fails_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="ended with"):
        measure_step(SETS[0], Step("read in", ("data", "check", str(tmp_path / "none"))))


def test_the_page() -> None:
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
    written = page(lines, "asked")
    assert f"* {later}, tables: `vesper data`" in written
    assert written.index(f"* {first}, v") < written.index(f"* {later}, tables")
