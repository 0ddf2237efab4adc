"""A proof is about code as it was read: when that code changes, somebody must read it again.

The `Code:` lines of a proof name functions, classes and constants. `docs/claims/read.json` holds a
digest of each claim's code: what is named, with everything of the same module that it uses.
Comments, docstrings, layout and the words of error messages do not count; conditions do. After
reading the proof against the new code, note it with

    make proof-read CLAIM=R-SUM
"""

import ast
import hashlib
import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLAIMS = ROOT / "docs" / "claims"
READ = CLAIMS / "read.json"


def code_names() -> dict[str, list[str]]:
    """The dotted names of each claim: its `Code:` lines, or its function in the index."""
    found = {}
    for line in (CLAIMS / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[2].startswith("`vesper."):
            proof = (CLAIMS / f"{cells[0]}.md").read_text()
            code = re.search(r"^Code: (.*?)\.$", proof, flags=re.MULTILINE | re.DOTALL)
            names = re.findall(r"`([\w.]+)`", code[1]) if code else []
            found[cells[0]] = names or [cells[2].strip("`")]
    return found


@cache
def definitions(module: str) -> dict[str, ast.stmt]:
    """What a module defines at its top level: functions, classes and constants."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return definitions_in(Path(spec.origin).read_text())


def definitions_in(source: str) -> dict[str, ast.stmt]:
    found: dict[str, ast.stmt] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in (
                each.id for t in targets for each in ast.walk(t) if type(each) is ast.Name
            ):
                found[name] = node
    return found


def used_with(name: str, known: dict[str, ast.stmt]) -> Iterator[ast.stmt]:
    """A definition, and those of the same module that it uses, in the order of the module."""
    needed, new = set[str](), {name}
    while new:
        needed |= new
        names = {
            each.id for one in new for each in ast.walk(known[one]) if isinstance(each, ast.Name)
        }
        new = (names & known.keys()) - needed
    return (node for each, node in known.items() if each in needed)


class _WithoutText(ast.NodeTransformer):
    """Removes docstrings, those of attributes too, and what errors say."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else node

    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        if isinstance(node.exc, ast.Call):
            node.exc = node.exc.func
        return node


def digest(source: str, name: str) -> str:
    """Digest what a definition does, with what it uses of the same module."""
    nodes = used_with(name, definitions_in(source))
    return "".join(ast.dump(_WithoutText().visit(node)) for node in nodes)


def digest_of(claim: str) -> str:
    """Digest all code of a claim."""
    parts = []
    for dotted in code_names()[claim]:
        module, _, name = dotted.rpartition(".")
        spec = importlib.util.find_spec(module)
        assert spec is not None
        assert spec.origin is not None, dotted
        parts.append(dotted + digest(Path(spec.origin).read_text(), name))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def test_code_lines_name_definitions_that_are_there() -> None:
    for claim, names in code_names().items():
        for dotted in names:
            module, _, name = dotted.rpartition(".")
            assert name in definitions(module), f"docs/claims/{claim}.md: `{dotted}` is not there"


def test_no_code_line_repeats_a_name() -> None:
    for claim, names in code_names().items():
        assert len(set(names)) == len(names), claim


@pytest.mark.parametrize("claim", sorted(code_names()))
def test_the_proof_was_read_against_this_code(claim: str) -> None:
    noted = json.loads(READ.read_text()).get(claim)
    assert noted == digest_of(claim), (
        f"code that docs/claims/{claim}.md names has changed since the proof was last read against "
        f"it: {', '.join(code_names()[claim])}. Read both, correct the proof, then run "
        f"make proof-read CLAIM={claim}"
    )


SOURCE = '''"""A."""
LIMIT = 3
"""Of x."""
def f(x):
    "doc"
    if x > LIMIT:
        raise ValueError(f"too large: {x}")
    return g(x) + 1  # why
def g(x):
    return x
def h(x):
    return x - 1
'''


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ('"doc"', '"other"', False),
        ("# why", "# because", False),
        ('"""Of x."""', '"""Largest x."""', False),
        ("too large: {x}", "expected less than {LIMIT}, got {x}", False),
        ("x - 1", "x - 2", False),
        ("g(x) + 1", "g(x) + 2", True),
        ("LIMIT = 3", "LIMIT = 4", True),
        ("x > LIMIT", "x >= LIMIT", True),
        ("    return x\ndef h", "    return -x\ndef h", True),
    ],
)
def test_a_digest_covers_what_a_function_does_and_what_it_uses(
    old: str, new: str, counts: bool
) -> None:
    assert SOURCE.count(old) == 1
    assert (digest(SOURCE.replace(old, new), "f") != digest(SOURCE, "f")) == counts


def note(claims: list[str]) -> None:
    """Write down that these proofs were read against the code as it is."""
    noted = json.loads(READ.read_text()) if READ.exists() else {}
    for claim in claims:
        noted[claim] = digest_of(claim)
    READ.write_text(json.dumps(dict(sorted(noted.items())), indent=2) + "\n")


if __name__ == "__main__":
    note(sys.argv[1:])
