"""Imports between packages and sub-packages point down, and never form a cycle."""

import ast
from collections import Counter

import pytest
from tests.architecture.source_tree import imported_modules, modules

# Top to bottom. A row imports only rows below it, and entries in one row never import each other.
# A module belongs to the longest entry that its name starts with.
ROWS: list[set[str]] = [
    {"__main__"},
    {"api", "cli"},
    {"report"},
    {"attack", "audit", "export", "study"},
    {"simulation", "serving.http"},
    {"serving"},
    {"deployment"},
    {"deployment.config", "deployment.alignment"},
    {"deployment.identity"},
    {"session"},
    {"method.registry"},
    {"method.baselines"},
    {"method.certified"},
    {"method"},
    {"party"},
    {"model"},
    {"mechanism.sampled"},
    {"mechanism"},
    {"mechanism.aggregations", "mechanism.noisy_graph"},
    {"mechanism.noise", "mechanism.reference"},
    {"datasets.finance"},
    {"datasets.block_model", "datasets.loaders", "datasets.prepare"},
    {"datasets", "graph.edges", "graph.sampling", "privacy.ledger", "privacy.planning"},
    {"graph", "privacy"},
    {"privacy.accounting"},
    {"drawing", "engine", "parallel", "protocol", "transport"},
    {"errors", "files", "progress", "version"},
]
ROW_OF = {place: row for row, places in enumerate(ROWS) for place in places}


def place_of(module: str) -> str:
    """The entry of `ROWS` that a module belongs to."""
    parts = module.split(".")
    names = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((name for name in names if name in ROW_OF), parts[0])


def upward_imports(module: str, tree: ast.AST) -> list[str]:
    own = place_of(module)
    return [
        f"{module} imports {other}"
        for other in sorted(imported_modules(tree))
        if place_of(other) != own and ROW_OF[place_of(other)] <= ROW_OF[own]
    ]


def test_every_package_and_sub_package_has_a_row() -> None:
    places = {".".join(name.split(".")[:-1]) or name for name in modules()}
    assert places - set(ROW_OF) == set()


def test_every_entry_of_a_row_exists() -> None:
    assert {place for place in ROW_OF if place not in modules()} == set()


def test_imports_point_down() -> None:
    found = [line for name, tree in modules().items() for line in upward_imports(name, tree)]
    assert found == []


def test_no_modules_import_each_other_in_a_cycle() -> None:
    imports = {name: imported_modules(tree) - {name} for name, tree in modules().items()}
    while leaves := {name for name, needed in imports.items() if not needed & imports.keys()}:
        for name in leaves:
            del imports[name]
    # The remaining modules are in a cycle, or import one.
    assert sorted(imports) == []


def test_file_names_are_unique() -> None:
    packages = {name.rpartition(".")[0] for name in modules()}
    stems = Counter(name.rpartition(".")[2] for name in modules() if name not in packages)
    assert [stem for stem, count in stems.items() if count > 1] == []


def test_names_of_public_classes_are_unique() -> None:
    names = Counter(
        node.name
        for tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_no_module_is_longer_than_400_lines() -> None:
    from tests.architecture.source_tree import SOURCE

    long = {p.name: n for p in SOURCE.rglob("*.py") if (n := len(p.read_text().splitlines())) > 400}
    assert long == {}


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("graph.csr", "from vesper.mechanism.release import release"),
        ("graph.csr", "import vesper.privacy.ledger.store"),
        ("graph.graph", "from vesper.graph.edges.pairs import Pairs"),
        ("privacy.events", "from vesper.graph.graph import Graph"),
        ("privacy.accounting.gaussian", "from vesper.privacy.events import Event"),
        ("method.certified.method", "from vesper.method.registry import METHODS"),
        ("errors", "from vesper import progress"),
    ],
)
def test_upward_and_sideways_imports_are_detected(module: str, line: str) -> None:
    assert upward_imports(module, ast.parse(line))
