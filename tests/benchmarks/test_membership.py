"""The table about node membership, and its place on its page."""

from pathlib import Path

import pytest

from benchmarks import membership


def test_the_table_has_one_row_per_protection_and_replaces_the_old_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cells = [
        {"name": "nodes protected", "seed": 0, "auc": 0.75, "tpr": 0.01},
        {"name": "nodes protected", "seed": 1, "auc": 0.77, "tpr": 0.01},
        {"name": "edges protected", "seed": 0, "auc": 0.5, "tpr": 0.0},
    ]
    lines = membership.table(cells).splitlines()
    assert lines[2] == "| edges protected | 1 | 50.00 \u00b1 - | 0.00 \u00b1 - |"
    assert lines[3].startswith("| nodes protected | 2 | 76.00 \u00b1 1.41 |")
    page = tmp_path / "attacks.md"
    page.write_text(f"before\n{membership.FIRST}\nold\n{membership.LAST}\nafter\n")
    monkeypatch.setattr(membership, "PAGE", page)
    for text in ("once", "again"):
        membership.insert_table(text)
    text = page.read_text()
    assert text == f"before\n{membership.FIRST}\nagain\n{membership.LAST}\nafter\n"


def test_every_protection_is_a_setting_that_can_be_run() -> None:
    contracts = {membership.config_of(given, seed=0).contract for given in membership.ROWS.values()}
    assert len(contracts) == len(membership.ROWS)
