"""The layers of the package: imports point down only, and edges have one door."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "vesper"

ROWS: list[set[str]] = [  # top to bottom; neighbours in one row never import each other
    {"__main__"},
    {"api", "cli"},
    {"report", "study", "audit", "attack"},
    {"run"},
    {"method"},
    {"party"},
    {"model"},
    {"mechanism"},
    {"graph", "privacy", "protocol", "transport", "datasets", "drawing", "engine"},
    {"errors", "partial", "progress", "stored_arrays", "version", "whole_file"},
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


# Edges have one door. `graph` holds them and `mechanism` releases them; all others see releases.

TELL_EDGES = {"indptr", "neighbors", "num_edges", "nbytes", "aggregate", "row_maker"}
"""Attributes of a graph, or of an aggregation, that are functions of edges."""

MAY_READ_EDGES = {"graph", "mechanism"}

OTHER_MEANING = {  # where such a name is not about a private graph
    "datasets/block_model/degree_profile.py": "num_edges: what a simulator is told to draw",
    "privacy/comparison.py": "num_edges: the number that the paper prints",
}

READS_THE_GRAPH_FOR_ITS_OWNER = {
    "graph.summary.summarize": {"cli/data.py"},  # `vesper data check`, printed at the data party
}

PUBLIC_MECHANISM = {  # what layers above may import, and why it is safe to hand out
    "aggregation": "what a door can make of messages, to hand to one: no graph in it",
    "certify": "sensitivities found by brute force, for documents: reads no data",
    "clipped_grid": "how far rounding moves clipped rows: the rest of it is for `release`",
    "degree_histogram": "needs a receipt",
    "door": "the graph behind its door",
    "drawn_once": "charges before anything is drawn: no graph in it",
    "edgerand": "a way to make noisy edges, to hand to a door: no graph in it",
    "fingerprint": "the keyed name of a graph, for the ledger",
    "grid": "messages on the grid: no graph in it",
    "grid_attention": "an aggregation, to hand to a door: no graph in it",
    "grid_gcn": "an aggregation, to hand to a door: no graph in it",
    "grid_max": "an aggregation, to hand to a door: no graph in it",
    "kept_door": "what was released before: charges nothing, draws nothing",
    "label_door": "labels behind their door: no graph in it",
    "label_response": "labels by randomised response: no graph in it",
    "lapgraph": "a way to make noisy edges, to hand to a door: no graph in it",
    "likelihood": "how likely an edge is after a release, for those who hold all others",
    "noise": "the only source of noise",
    "perturbed_graph": "a graph of noisy edges, for baselines",
    "release": "needs a receipt",
    "sampled": "layers of the paper's plan, never shown as certified",
    "vault": "released arrays on disk: no graph in it",
    "watched_door": "the graph behind its door, and a note of what came out",
    "world_ratios": "how likely one graph is against another, for those who hold both",
}

PUBLIC_GRAPH = {  # tables and types; samplers, subgraphs and relations stay below
    "features": "edge-free",
    "foreign": "graphs of other libraries, to hand on",
    "graph": "the type, to hand on",
    "holdings": "opens a folder",
    "ids": "node names",
    "labelled": "edge-free",
    "labels": "edge-free",
    "schedule": "batches of public roots",
    "source": "tables",
    "summary": "for the owner's eyes; `summarize` has its own rule",
    "compiled": "machine code of loops, kept on disk: no graph in it",
    "team": "threads for compiled loops: no graph in it",
}


JUDGES = {"audit", "attack"}
"""Packages that hold the truth, to score guesses of it."""

FOR_JUDGES = {"vesper.graph.induced", "vesper.graph.pairs", "vesper.graph.relation"}


def tells_edges(tree: ast.AST) -> list[str]:
    return [
        f"line {node.lineno}: .{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in TELL_EDGES
    ]


def inside_imports(tree: ast.AST) -> list[str]:
    """Imports of modules of `mechanism` and `graph` that are for these two alone."""
    found = []
    for name in imported(tree):
        package, _, rest = name.removeprefix("vesper.").partition(".")
        module = rest.partition(".")[0]
        public = {"mechanism": PUBLIC_MECHANISM, "graph": PUBLIC_GRAPH}.get(package, {module: ""})
        if name.startswith("vesper.") and module and module not in public:
            found.append(name)
    return found


def asks_for_the_graph(tree: ast.AST) -> bool:
    return any(getattr(node, "attr", "") == "uncertified_graph" for node in ast.walk(tree))


def says_certified(tree: ast.AST) -> bool:
    """Whether a promise made here may be `certified`: the word, or a maker of such promises."""
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    makers = {name.rpartition(".")[2] for name in imported(tree)} & {"certified", "noise_of_sums"}
    return "certified" in words or bool(makers)


above = pytest.mark.parametrize(
    "path",
    [p for p in modules() if p.relative_to(SOURCE).parts[0] not in MAY_READ_EDGES],
    ids=lambda p: str(p.relative_to(SOURCE)),
)


@above
def test_edges_have_one_door(path: Path) -> None:
    if path.relative_to(SOURCE).as_posix() not in OTHER_MEANING:
        assert tells_edges(ast.parse(path.read_text())) == []


@above
def test_only_public_modules_of_mechanism_and_graph_are_imported_above(path: Path) -> None:
    inside = inside_imports(ast.parse(path.read_text()))
    if path.relative_to(SOURCE).parts[0] in JUDGES:
        inside = [name for name in inside if ".".join(name.split(".")[:3]) not in FOR_JUDGES]
    assert inside == []


@above
def test_what_is_for_the_owner_is_printed_by_one_verb(path: Path) -> None:
    names = {name.removeprefix("vesper.") for name in imported(ast.parse(path.read_text()))}
    for name, places in READS_THE_GRAPH_FOR_ITS_OWNER.items():
        assert name not in names or path.relative_to(SOURCE).as_posix() in places


@above
def test_who_certifies_does_not_ask_for_the_graph(path: Path) -> None:
    tree = ast.parse(path.read_text())
    if asks_for_the_graph(tree):
        assert path.relative_to(SOURCE).parts[0] == "method"
        assert not says_certified(tree)


def test_exceptions_are_about_files_that_are_there() -> None:
    for place in OTHER_MEANING:
        assert tells_edges(ast.parse((SOURCE / place).read_text())), f"{place} needs no exception"
    for places in READS_THE_GRAPH_FOR_ITS_OWNER.values():
        assert all((SOURCE / place).is_file() for place in places)


@pytest.mark.parametrize(
    "line",
    [
        "x = graph.neighbors[graph.indptr[0]]",
        "delta = 1 / data.graph.num_edges",
        "send(graph.nbytes)",
        "z = NeighborSum().aggregate(graph, messages)",
    ],
)
def test_a_reader_of_edges_is_seen(line: str) -> None:
    assert tells_edges(ast.parse(line))


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("from vesper.mechanism.neighbor_sum import NeighborSum", True),
        ("from vesper.mechanism import gin", True),
        ("from vesper.graph.relation import edges_of", True),
        ("from vesper.mechanism.door import ChargedDoor", False),
        ("from vesper.privacy.ledger import Ledger", False),
    ],
)
def test_an_inside_import_is_seen(line: str, refused: bool) -> None:
    assert bool(inside_imports(ast.parse(line))) == refused


@pytest.mark.parametrize(
    "source",
    [
        'Promise(plan="certified"); door.uncertified_graph()',
        "from vesper.method.budgeting import certified\ndoor.uncertified_graph()",
    ],
)
def test_a_certified_method_with_the_graph_in_hand_is_seen(source: str) -> None:
    assert asks_for_the_graph(ast.parse(source))
    assert says_certified(ast.parse(source))


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
