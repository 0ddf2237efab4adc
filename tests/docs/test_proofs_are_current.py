"""A proof is about code as it was read: when that code changes, somebody must read it again.

`docs/claims/read.json` holds, for each claim, a digest of its code (comments, docstrings and layout
do not count). After reading the proof against the new code, note it with

    make proof-read CLAIM=R-SUM
"""

import ast
import hashlib
import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READ = ROOT / "docs" / "claims" / "read.json"


def modules() -> dict[str, list[Path]]:
    """The sources of each claim: its `Code:` lines, or the module of its function in the index."""
    found = {}
    for line in (ROOT / "docs" / "claims" / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[2].startswith("`vesper."):
            proof = (ROOT / "docs" / "claims" / f"{cells[0]}.md").read_text()
            code = re.search(r"^Code: (.*?)\.$", proof, flags=re.MULTILINE | re.DOTALL)
            names = re.findall(r"`([\w.]+)`", code[1]) if code else []
            found[cells[0]] = [
                source_of(n) for n in names or [cells[2].strip("`").rpartition(".")[0]]
            ]
    return found


def source_of(module: str) -> Path:
    """Where a module is written."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)


def digest_of(claim: str) -> str:
    """Digest all sources of a claim."""
    return digest("\n".join(path.read_text() for path in modules()[claim]))


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
    names = ", ".join(path.name for path in modules()[claim])
    assert noted == digest_of(claim), (
        f"one of {names} has changed since docs/claims/{claim}.md was last read against it; read "
        f"both, mend the proof, then: make proof-read CLAIM={claim}"
    )


def test_layout_and_comments_do_not_count_but_code_does() -> None:
    first = digest('"""A."""\ndef f(x):\n    "doc"\n    return x + 1  # why\n')
    assert first == digest('"""B."""\ndef f(x):\n    return (x + 1)\n')
    assert first != digest("def f(x):\n    return x + 2\n")


def note(claims: list[str]) -> None:
    """Write down that these proofs were read against the code as it is."""
    noted = json.loads(READ.read_text()) if READ.exists() else {}
    for claim in claims:
        noted[claim] = digest_of(claim)
    READ.write_text(json.dumps(dict(sorted(noted.items())), indent=2) + "\n")


if __name__ == "__main__":
    note(sys.argv[1:])
