"""A proof is about code as it was read: when that code changes, somebody must read it again.

`docs/claims/read.json` holds, for each claim, a digest of the module of its function (comments,
docstrings and layout do not count). After reading the proof against the new code, note it with

    make proof-read CLAIM=R-SUM
"""

import ast
import hashlib
import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
READ = ROOT / "docs" / "claims" / "read.json"


def modules() -> dict[str, Path]:
    """The source file of the function of each claim, from the index."""
    found = {}
    for line in (ROOT / "docs" / "claims" / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[2].startswith("`vesper."):
            spec = importlib.util.find_spec(cells[2].strip("`").rpartition(".")[0])
            assert spec is not None
            assert spec.origin is not None
            found[cells[0]] = Path(spec.origin)
    return found


def digest(source: str) -> str:
    """Digest what the code does, not how it is laid out or commented."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            is_text = isinstance(node.body[0], ast.Expr) if node.body else False
            if is_text and ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16]


@pytest.mark.parametrize("claim", sorted(modules()))
def test_the_proof_was_read_against_this_code(claim: str) -> None:
    noted = json.loads(READ.read_text()).get(claim)
    assert noted == digest(modules()[claim].read_text()), (
        f"{modules()[claim].name} has changed since docs/claims/{claim}.md was last read against "
        f"it; read both, mend the proof, then: make proof-read CLAIM={claim}"
    )


def test_layout_and_comments_do_not_count_but_code_does() -> None:
    first = digest('"""A."""\ndef f(x):\n    "doc"\n    return x + 1  # why\n')
    assert first == digest('"""B."""\ndef f(x):\n    return (x + 1)\n')
    assert first != digest("def f(x):\n    return x + 2\n")


def note(claims: list[str]) -> None:
    """Write down that these proofs were read against the code as it is."""
    noted = json.loads(READ.read_text()) if READ.exists() else {}
    for claim in claims:
        noted[claim] = digest(modules()[claim].read_text())
    READ.write_text(json.dumps(dict(sorted(noted.items())), indent=2) + "\n")


if __name__ == "__main__":
    note(sys.argv[1:])
