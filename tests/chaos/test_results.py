"""Results are lines of JSON that survive a kill, and become a table."""

from pathlib import Path

from chaos.results import BEGIN, END, append_result, read_results, summary_of, table_of, write_into
from chaos.trial import TrialResult


def result(number: int, outcome: str, *faults: str, codes: tuple[str, ...] = ()) -> TrialResult:
    return TrialResult(
        seed=7,
        number=number,
        scenario="two parties",
        variant="gap",
        outcome=outcome,
        faults=list(faults),
        codes=list(codes),
        seconds=30.0,
    )


RESULTS = [
    result(0, "held", "bank: kill after send 4", codes=("bank -9", "bank 0", "platform 0")),
    result(1, "failed", "platform: power before fsync 1", "bank helped"),
]


def test_a_line_that_was_cut_off_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.jsonl"
    for each in RESULTS:
        append_result(path, each)
    with path.open("a") as file:
        file.write('{"seed": 7, "num')
    assert read_results(path) == RESULTS


def test_the_table_counts_faults_restarts_and_outcomes() -> None:
    assert table_of(RESULTS).splitlines()[2:] == [
        "| two parties: gap | 2 | 2 | 1 | 1 | 1 | 0 |",
        "| **all** | 2 | 2 | 1 | 1 | 1 | 0 |",
    ]
    assert summary_of(RESULTS) == (
        "2 trials in 1 minutes with seed 7. Faults that happened: 1 kills, 1 power losses."
    )


def test_only_the_counts_of_a_page_are_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_into(page, RESULTS)
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n2 trials")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
