"""The table has a row for each step, and names no folder of the machine."""

from pathlib import Path

import pytest
from benchmarks.paper_sizes import SETS, Line, Set, Step, measured, page, steps_of, table


def test_steps_are_commands_that_a_user_types(tmp_path: Path) -> None:
    for of in SETS:
        steps = steps_of(of, tmp_path, tmp_path / "runs", paper_epochs=2, nodes=0)
        assert [step.name for step in steps] == ["tables", "read in", "vesper", "vesper-paper-gin"]
        assert all(word in steps[3].words for word in ("--preset", of.preset, "epochs=2"))


def test_a_step_is_measured(tmp_path: Path) -> None:
    of = Set("finance", "finance", 400)
    tables = steps_of(of, tmp_path, tmp_path, paper_epochs=1, nodes=400)[0]
    line = measured(of, tables)
    assert (tmp_path / "finance" / "data" / "edges.parquet").exists()
    assert line.seconds > 0
    assert line.peak_bytes > 1 << 20
    assert str(tmp_path) not in line.command


def test_a_step_that_fails_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="ended with"):
        measured(SETS[0], Step("read in", ("data", "check", str(tmp_path / "none"))))


def test_the_page() -> None:
    facts = {
        "metric": "accuracy",
        "test": 61.25,
        "bytes_to_label_party": 2_500_000,
        "bytes_to_data_party": 10**6,
        "noise_std": 2.4,
    }
    lines = [Line("s", "tables", "vesper data", 1.0, 2**30), Line("s", "v", "c", 9.0, 2**31, facts)]
    assert list(table(lines))[2:] == [
        "| s | tables | 1 | 1.00 |  |  |  |  |",
        "| s | v | 9 | 2.00 | 2.5 | 1.0 | accuracy 61.25 | 2.40 |",
    ]
    assert "* s, tables: `vesper data`" in page(lines, "asked")
