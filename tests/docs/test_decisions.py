"""Decision records have one form, and the index lists each of them once."""

import re
from collections import Counter
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
DECISIONS = DOCS / "decisions"
RECORDS = sorted(DECISIONS.glob("[0-9]*.md"))
MAX_LINES = 60
MAX_COLUMNS = 120
"""Of prose; rows of tables may be longer."""

HEADER = re.compile(
    r"# (?P<number>\d{4}): (?P<title>\S.*)\n\n"
    r"\| Status \| Date \|(?: Experiments \|)?\n"
    r"\|(?: --- \|){2,3}\n"
    r"\| (?P<status>accepted|superseded by \[\d{4}\])[^|]* \| (?P<date>\d{4}-\d\d-\d\d) \|"
)
ROW = re.compile(
    r"^\| \[(?P<number>\d{4})\]\((?P<file>[^)]+)\) \| (?P<title>[^|]+) "
    r"\| (?P<status>accepted|superseded by \[\d{4}\])[^|]* "
    r"\| (?P<date>[^|]+) \| (?P<choice>[^|]+) \|$",
    flags=re.MULTILINE,
)


def header(record: Path) -> re.Match[str]:
    found = HEADER.match(record.read_text())
    assert found, f"{record.name}: expected a title and a table of Status and Date"
    return found


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_a_record_has_the_required_form(record: Path) -> None:
    lines = record.read_text().splitlines()
    assert len(lines) <= MAX_LINES, f"{len(lines)} lines; move measurements to docs/experiments/"
    long = [line for line in lines if len(line) > MAX_COLUMNS and not line.startswith("|")]
    assert not long
    assert header(record)["number"] == record.name[:4]
    sections = [line for line in lines if line.startswith("#")][1:]
    assert sections == ["## Question", "## Options", "## Choice", "## Consequences"]


def test_the_index_lists_each_record_once_with_its_header() -> None:
    rows = list(ROW.finditer((DECISIONS / "README.md").read_text()))
    assert [row["file"] for row in rows] == [record.name for record in RECORDS]
    for row, record in zip(rows, RECORDS, strict=True):
        fields = ("number", "title", "status", "date")
        assert row.group(*fields) == header(record).group(*fields), record.name


def test_records_are_numbered_without_gaps() -> None:
    numbers = [int(record.name[:4]) for record in RECORDS]
    assert numbers == list(range(1, len(RECORDS) + 1))


def test_the_index_of_experiments_lists_each_page_once() -> None:
    index = (DOCS / "experiments" / "README.md").read_text()
    listed = Counter(re.findall(r"^\| \[[^]]+\]\(([^)]+)\)", index, flags=re.MULTILINE))
    pages = {path.name for path in (DOCS / "experiments").glob("*.md")} - {"README.md"}
    assert listed == Counter(pages)
