"""The modules of the package and their imports, parsed once for all rules."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "vesper"


@cache
def modules() -> dict[str, ast.Module]:
    """Parse all modules, by dotted name below `vesper`; an `__init__` by that of its package."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name:
            found[name] = ast.parse(path.read_text())
    return found


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the full dotted names that a module imports: modules, and names in modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_modules(tree: ast.AST) -> set[str]:
    """Names, below `vesper`, of the modules and packages of this project that a module imports."""
    found = set()
    for name in imported(tree):
        own = name.removeprefix("vesper.")
        if name.startswith("vesper."):
            known = own if own in modules() else own.rpartition(".")[0]
            if known in modules():
                found.add(known)
    return found
