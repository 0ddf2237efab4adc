"""`graph` holds edges, `mechanism` releases sums over them, other packages see only releases."""

import ast

import pytest
from tests.architecture.source_tree import imported, imported_modules, modules

EDGE_ATTRIBUTES = {"indptr", "neighbors", "num_edges", "nbytes", "aggregate", "row_maker"}
"""Attributes of a graph or an aggregation that depend on edges."""

SAME_NAME_FOR_PUBLIC_NUMBERS = {
    "datasets.block_model.degree_profile": "num_edges: how many edges a simulator draws",
    "privacy.planning.paper_plan": "num_edges: as the paper states it",
}

KNOW_THE_TRUTH = {"attack", "audit"}
"""Packages that hold the graph in order to score guesses of it."""

FOR_THE_OWNER = {"graph.summary.summarize": {"cli.data_command"}}
"""Functions that read the graph for its owner only, and the modules that may print the result."""


def above_mechanism() -> dict[str, ast.Module]:
    return {
        name: tree
        for name, tree in modules().items()
        if name.partition(".")[0] not in {"graph", "mechanism"}
    }


def edge_reads(tree: ast.AST) -> list[str]:
    return [
        f"line {node.lineno}: .{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in EDGE_ATTRIBUTES
    ]


def inner_imports(module: str, tree: ast.AST) -> list[str]:
    """List imports from inside a sub-package of `mechanism` or `graph`, past its `__init__`.

    Any package may import the modules directly in these two packages, and the names that the
    `__init__` of a sub-package exports. Modules in a sub-package are only for these two packages.
    """
    refused = []
    for other in sorted(imported_modules(tree)):
        package, *rest = other.split(".")
        inside = package in {"graph", "mechanism"} and len(rest) > 1
        if inside or other == "graph.sampling":
            refused.append(f"{module} imports {other}")
        if other == "graph.edges" and module.partition(".")[0] not in KNOW_THE_TRUTH:
            refused.append(f"{module} imports {other}")
    return refused


def reads_the_graph(tree: ast.AST) -> bool:
    return any(getattr(node, "attr", "") == "uncertified_graph" for node in ast.walk(tree))


def may_be_certified(tree: ast.AST) -> bool:
    """Whether a module may make a `certified` noise plan: it has the word, or imports a maker."""
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    makers = {name.rpartition(".")[2] for name in imported(tree)} & CERTIFYING_FUNCTIONS
    return "certified" in words or bool(makers)


CERTIFYING_FUNCTIONS = {"certified", "noise_of_sums"}


def test_only_graph_and_mechanism_read_edges() -> None:
    reads_by_module = {
        name: reads
        for name, tree in above_mechanism().items()
        if name not in SAME_NAME_FOR_PUBLIC_NUMBERS and (reads := edge_reads(tree))
    }
    assert reads_by_module == {}


def test_other_packages_import_nothing_from_inside_their_sub_packages() -> None:
    refused = [
        line for name, tree in above_mechanism().items() for line in inner_imports(name, tree)
    ]
    assert refused == []


def test_functions_for_the_owner_are_used_only_where_allowed() -> None:
    for function, allowed in FOR_THE_OWNER.items():
        users = {
            name
            for name, tree in above_mechanism().items()
            if f"vesper.{function}" in set(imported(tree))
        }
        assert users <= allowed
        assert allowed <= set(modules())


def test_a_certified_method_never_reads_the_graph() -> None:
    for name, tree in above_mechanism().items():
        if reads_the_graph(tree):
            assert name.startswith("method."), name
            assert not may_be_certified(tree), name


def test_exceptions_are_still_needed() -> None:
    for name in SAME_NAME_FOR_PUBLIC_NUMBERS:
        assert edge_reads(modules()[name]), f"{name} no longer needs an exception"


@pytest.mark.parametrize(
    "line",
    [
        "x = graph.neighbors[graph.indptr[0]]",
        "delta = 1 / data.graph.num_edges",
        "send(graph.nbytes)",
        "z = NeighborSum().aggregate(graph, messages)",
    ],
)
def test_reads_of_edges_are_detected(line: str) -> None:
    assert edge_reads(ast.parse(line))


@pytest.mark.parametrize(
    ("module", "line", "refused"),
    [
        ("session.doors", "from vesper.mechanism.aggregations import neighbor_sum", True),
        ("session.doors", "from vesper.mechanism.reference.gin import GinAggregation", True),
        ("session.doors", "from vesper.graph.edges import edges_of", True),
        ("audit.trial", "from vesper.graph.edges import edges_of", False),
        ("session.doors", "from vesper.mechanism.door import ChargedDoor", False),
        ("session.doors", "from vesper.privacy.ledger.store import Ledger", False),
    ],
)
def test_inner_imports_are_detected(module: str, line: str, refused: bool) -> None:
    assert bool(inner_imports(module, ast.parse(line))) == refused


@pytest.mark.parametrize(
    "source",
    [
        'NoisePlan(plan="certified"); door.uncertified_graph()',
        "from vesper.method.noise_plan import certified\ndoor.uncertified_graph()",
    ],
)
def test_a_certified_method_that_reads_the_graph_is_detected(source: str) -> None:
    assert reads_the_graph(ast.parse(source))
    assert may_be_certified(ast.parse(source))
