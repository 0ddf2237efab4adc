"""Tables contain results and published scores."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from vesper.study.cell import Cell, CellResult
from vesper.study.findings import findings_in
from vesper.study.folder import Study, open_folder
from vesper.study.presets import find_grid
from vesper.study.study_results import JOURNAL, append_line
from vesper.study.table import as_markdown, tables_of

Fill = Callable[[str, Sequence[CellResult]], Path]
GIN, OURS = "VESPER(GIN)", "vesper (certified)"


@pytest.fixture
def fill(tmp_path: Path) -> Fill:
    """Return a function that makes the folder of a preset with given results."""

    def make(name: str, lines: Sequence[CellResult]) -> Path:
        sources = dict.fromkeys(find_grid(name)[1].datasets, "simulated, 9 nodes")
        study = Study(name=name, small=True, grid=find_grid(name)[1], seeds=2, sources=sources)
        with open_folder(tmp_path, study):
            for line in lines:
                append_line(tmp_path / JOURNAL, line)
        return tmp_path

    return make


def some_lines(line: Callable[..., CellResult]) -> list[CellResult]:
    paper = [Cell("reddit", "paper-gin", 4.0, seed, f"{GIN}: gru D=5") for seed in range(3)]
    worse = Cell("reddit", "paper-gin", 4.0, 0, f"{GIN}: concat D=5")
    return [
        line(worse, test=39.0, plan="paper", metric="accuracy"),
        line(paper[0], test=40.0, plan="paper", metric="accuracy"),
        line(paper[1], test=42.0, plan="paper", metric="accuracy"),
        line(paper[2], test=99.0, plan="paper"),  # one seed too many
        line(Cell("reddit", "certified", 4.0, 0, OURS), test=70.0, plan="certified"),
        line(Cell("reddit", "certified", 32.0, 0, OURS), test=None, failed="InputError: no"),
        line(Cell("reddit", "certified", 5.0, 0, OURS), test=1.0),  # not in the grid
    ]


def test_results_are_above_published_scores_with_their_guarantee(
    fill: Fill, line: Callable[..., CellResult]
) -> None:
    tables = tables_of(findings_in(fill("table-1", some_lines(line))))
    assert [table.title.split(" (")[0] for table in tables] == [
        "ogbn-products",
        "Reddit",
        "Finance",
    ]
    reddit = tables[1]
    assert reddit.columns == ["epsilon", "guarantee", "4", "32", "inf"]
    rows = [list(row) for row in reddit.rows]
    at = [row[0] for row in rows].index(f"{GIN}, best of")
    assert rows[at][:4] == [f"{GIN}, best of", "claimed", "41.0 ± 1.4", ""]
    assert rows[at + 1][:4] == ["  with", "", "gru D=5", ""]
    assert rows[at + 2][:4] == ["  published", "", "82.3 ± 1.6", "93.8 ± 0.2"]
    assert rows[at + 3][:4] == ["  with", "", "concat", "concat"]
    each = {row[0]: row for row in rows}
    assert each[f"{GIN}: concat D=5"][:3] == [f"{GIN}: concat D=5", "claimed", "39.0 (1)"]
    assert rows[-1][:4] == [OURS, "certified", "70.0 (1)", ""]


def test_markdown_lists_missing_cells(fill: Fill, line: Callable[..., CellResult]) -> None:
    text = as_markdown(findings_in(fill("table-1", some_lines(line))))
    assert "## Reddit (simulated, 9 nodes): accuracy" in text
    assert "| VESPER(GIN), best of | claimed | 41.0 ± 1.4 |" in text
    assert f"* Missing: reddit, {OURS}, epsilon 32, seed 0: InputError: no." in text


def test_json_has_both_numbers(fill: Fill, line: Callable[..., CellResult]) -> None:
    facts = findings_in(fill("table-1", some_lines(line))).as_json()
    (cell,) = [
        each
        for each in facts["cells"]
        if (each["dataset"], each["series"], each["epsilon"]) == ("reddit", GIN, 4.0)
    ]
    assert (cell["mean"], cell["published_mean"], cell["seeds"]) == (41.0, 82.34, 2)
    assert (cell["configuration"], cell["published_configuration"]) == ("gru D=5", "concat")
    assert cell["guarantee"] == "claimed"
    assert facts["failed"] == [
        {"cell": f"reddit, {OURS}, epsilon 32, seed 0", "why": "InputError: no"}
    ]


def test_degrees_are_shares_of_nodes(fill: Fill, line: Callable[..., CellResult]) -> None:
    histogram = (30.0, *[1.0] * 50)
    cell = Cell("finance", "certified", 0.1, 0, OURS)
    lines = [line(cell, test=None, histogram=histogram, plan="certified", measure="degrees")]
    findings = findings_in(fill("degree-histograms", lines))
    table = tables_of(findings)[2]
    assert table.columns[2] == f"{OURS}, certified"
    rows = {row[0]: row for row in table.rows}
    assert rows["0"][2] == "37.50 %"
    assert rows["10 to 14"][2] == "6.25 %"
    assert rows["50 and more"][3] == "0.03 %"
    facts = findings.as_json()["cells"]
    assert [each["histogram"] for each in facts if "histogram" in each] == [list(histogram)]
