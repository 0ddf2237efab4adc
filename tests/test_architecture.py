"""The layers of the package: imports point down only, and edges have one door."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "vesper"

ROWS: list[set[str]] = [  # top to bottom; neighbours in one row never import each other
    {"__main__"},
    {"cli"},
    {"report", "study", "audit", "attack"},
    {"run"},
    {"method"},
    {"party"},
    {"model"},
    {"mechanism"},
    {"graph", "privacy", "protocol", "transport", "datasets"},
    {"errors", "progress", "version"},
]
LEVEL = {package: depth for depth, row in enumerate(ROWS) for package in row}


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def package_of(dotted: str) -> str | None:
    parts = dotted.split(".")
    return parts[1] if parts[0] == "vesper" and len(parts) > 1 else None


def offences(package: str, tree: ast.AST) -> list[str]:
    found = []
    for name in imported(tree):
        other = package_of(name)
        if other in LEVEL and other != package and LEVEL[other] <= LEVEL[package]:
            found.append(f"{package} imports {name}")
    return found


def test_every_package_has_its_place() -> None:
    assert {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in modules()} <= set(
        LEVEL
    )


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down(path: Path) -> None:
    package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    assert not offences(package, ast.parse(path.read_text()))


@pytest.mark.parametrize(
    ("package", "line"),
    [
        ("graph", "from vesper.mechanism.release import release"),
        ("graph", "import vesper.privacy.ledger"),
        ("privacy", "from vesper.graph.graph import Graph"),
        ("errors", "from vesper import progress"),
    ],
)
def test_an_upward_or_sideways_import_is_seen(package: str, line: str) -> None:
    assert offences(package, ast.parse(line))


ADJACENCY = {"indptr", "neighbors"}
MAY_READ_EDGES = {"graph", "mechanism"}


def reads_adjacency(tree: ast.AST) -> list[int]:
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ADJACENCY
    ]


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_edges_have_one_door(path: Path) -> None:
    if path.relative_to(SOURCE).parts[0] not in MAY_READ_EDGES:
        assert reads_adjacency(ast.parse(path.read_text())) == []


def test_a_reader_of_edges_is_seen() -> None:
    assert reads_adjacency(ast.parse("x = graph.neighbors[graph.indptr[0] :]")) == [1, 1]


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_modules_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


STOPS = [
    "run/session.py",
    "party/data_party.py",
    "model/pre.py",
    "protocol/messages.py",
    "party/label_party.py",
]


def test_one_batch_can_be_followed_through_five_files() -> None:
    for k, (stop, following) in enumerate(zip(STOPS, [*STOPS[1:], None], strict=True), start=1):
        docstring = ast.get_docstring(ast.parse((SOURCE / stop).read_text())) or ""
        assert f"One batch, stop {k} of {len(STOPS)}" in docstring.splitlines()[0]
        if following is not None:
            assert docstring.splitlines()[-1] == f"Next: src/vesper/{following}"
