"""Every claim has its function, proof and tests, and every erratum its counterexample."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLAIMS = ROOT / "docs" / "claims"
ERRATA = ROOT / "docs" / "errata.md"
HEADINGS = ("Claim:", "Relation:", "Assumes", "Moves:", "Tight:", "Proof:")


def index() -> list[list[str]]:
    """Cells of the table in docs/claims/README.md: id, line, function, proof, tests, status."""
    lines = (CLAIMS / "README.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "](" in line]
    return [row for row in rows if len(row) == 6]


def test_the_index_lists_exactly_the_proofs() -> None:
    proofs = {path.stem for path in CLAIMS.glob("*.md")} - {"README"}
    assert {row[0] for row in index()} == proofs
    for name, _, _, proof, _, _ in index():
        assert proof == f"[{name}]({name}.md)"


@pytest.mark.parametrize("row", index(), ids=lambda row: str(row[0]))
def test_a_claim_states_its_function_its_tests_and_its_status(row: list[str]) -> None:
    name, _, function, _, tests, status = row
    assert (ROOT / tests.strip("`")).is_file()
    assert status.startswith(("proved", "refuted"))
    assert function or name == "POST"
    if function:
        module_name, _, attribute = function.strip("`").rpartition(".")
        module = importlib.import_module(module_name)
        stated = f"{module.__doc__} {getattr(module, attribute).__doc__}"
        assert name in stated


def classes_with_claims() -> list[tuple[str, str]]:
    """List the classes of the mechanism whose docstrings state a claim, with these docstrings."""
    found = []
    for path in sorted((ROOT / "src" / "vesper" / "mechanism").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            docstring = ast.get_docstring(node) if isinstance(node, ast.ClassDef) else None
            if docstring and "Claim:" in docstring and isinstance(node, ast.ClassDef):
                found.append((node.name, inspect.cleandoc(docstring)))
    return found


@pytest.mark.parametrize(
    ("name", "docstring"), classes_with_claims(), ids=lambda value: str(value)[:24]
)
def test_a_claim_is_stated_under_all_headings_and_its_proof_exists(
    name: str, docstring: str
) -> None:
    places = [docstring.find(f"\n{heading}") for heading in HEADINGS]
    assert -1 not in places, f"{name}: {HEADINGS}"
    assert places == sorted(places)
    proof = re.search(r"Proof: (docs/claims/[A-Z-]+\.md)\.", docstring)
    assert proof is not None
    assert (ROOT / proof[1]).is_file()


def test_classes_with_claims_are_found() -> None:
    assert {"NeighborSum", "GinAggregation"} <= {name for name, _ in classes_with_claims()}


def named_tests(document: Path) -> list[tuple[str, str]]:
    return re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", document.read_text())


@pytest.mark.parametrize(("path", "test"), named_tests(ERRATA), ids=lambda value: str(value))
def test_every_test_named_in_the_errata_exists(path: str, test: str) -> None:
    tree = ast.parse((ROOT / path).read_text())
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_erratum_has_a_test() -> None:
    entries = re.split(r"^## ", ERRATA.read_text(), flags=re.MULTILINE)[1:]
    numbered = [entry for entry in entries if entry[0].isdigit()]
    assert [int(entry.split(".")[0]) for entry in numbered] == list(range(1, 17))
    for entry in numbered:
        assert "**Paper.**" in entry
        assert "**True.**" in entry
        assert re.search(r"`tests/[\w/]+\.py::\w+`", entry), entry.splitlines()[0]
