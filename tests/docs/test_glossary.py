"""One term, one name: retired words stay out, and names that the glossary gives are in the code."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
CODE = [*(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
TESTS = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
PAGES = [
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")]
    if "history" not in path.parts and path.name != "glossary.md" and ".venv" not in str(path)
]


def retired(heading: str) -> list[str]:
    """Words of the table whose first column has this heading."""
    table = GLOSSARY.partition(f"| {heading} |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]
    return [word.strip() for row in rows for word in row.split(",")]


EVERYWHERE, IN_NAMES = retired("retired everywhere"), retired("retired in names")


def identifiers(tree: ast.AST) -> Iterator[str]:
    """Names that a module gives or uses."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg


def words_of(identifier: str) -> str:
    """The words of a name, `_` between and around them.

    >>> words_of("DataPeer"), words_of("num_told")
    ('_data_peer_', '_num_told_')
    """
    return f"_{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', identifier).lower().strip('_')}_"


def lines_with(words: list[str], text: str) -> list[str]:
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, words))})\b", flags=re.IGNORECASE)
    return [line.strip()[:120] for line in text.splitlines() if pattern.search(line)]


def test_the_tables_are_read() -> None:
    assert {"voices", "beside", "go on with"} <= set(EVERYWHERE)
    assert {"told", "kept_run"} <= set(IN_NAMES)


def test_retired_words_are_in_no_code_and_on_no_page() -> None:
    found = {
        str(path.relative_to(ROOT)): lines
        for path in [*CODE, *TESTS, *PAGES]
        if (lines := lines_with(EVERYWHERE, path.read_text()))
    }
    assert found == {}


def test_retired_words_are_in_no_name() -> None:
    found = {
        str(path.relative_to(ROOT)): sorted(names)
        for path in [*CODE, *TESTS]
        if (
            names := {
                name
                for name in identifiers(ast.parse(path.read_text()))
                if any(f"_{word}_" in words_of(name) for word in IN_NAMES + EVERYWHERE)
            }
        )
    }
    assert found == {}


def test_file_names_have_no_retired_word() -> None:
    found = [
        path.name
        for path in [*CODE, *TESTS, *PAGES]
        if any(f"_{word}_" in words_of(path.stem) for word in IN_NAMES + EVERYWHERE)
    ]
    assert found == []


def test_names_that_the_glossary_gives_are_in_the_code() -> None:
    source = "\n".join(path.read_text() for path in CODE)
    missing = []
    for line in GLOSSARY.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and line.startswith("| "):
            for name in re.findall(r"`([\w.]+)`", cells[2]):
                last = name.rpartition(".")[2]
                is_module = any(path.stem == last or path.parent.name == last for path in CODE)
                if not is_module and not re.search(rf"\b{last}\b", source):
                    missing.append(name)
    assert missing == []


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("what a node's voice says", True),
        ("It goes on with the run.", True),
        ("the vaults of a bank", False),
        ("invoice", False),
    ],
)
def test_words_are_found_as_words(text: str, is_found: bool) -> None:
    assert bool(lines_with(EVERYWHERE, text)) == is_found
