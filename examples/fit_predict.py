"""Fit on a graph in memory, predict, save, and write a page for the privacy officer.

python examples/fit_predict.py [FOLDER]

Uses the public graph `cora` if the public graphs are next to the project, and a small random graph
otherwise. Noise is not simulated, so the fit is private. A ledger records what was spent under the
name of the graph: the same fit again costs nothing, and another fit under that name is refused.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from vesper import BudgetError, Graph, Vesper, open_data, open_labels
from vesper.datasets.loaders.convert import convert

PUBLIC = Path(__file__).resolve().parents[2] / "shared" / "data" / "cora"


def public_graph(folder: Path) -> tuple[Graph, Any, Any]:
    """Return the public graph: nodes are rows of its table, labels are by node number."""
    convert(PUBLIC, folder / "cora")
    data, labels = open_data(folder / "cora" / "data"), open_labels(folder / "cora" / "label")
    nodes = data.ids.find_texts([str(value) for value in labels.ids.values.to_pylist()])
    return data.graph, data.features, dict(zip(nodes.tolist(), labels.labels.tolist(), strict=True))


def random_graph() -> tuple[Any, Any, Any]:
    """Return a random graph of three groups, with most edges inside a group."""
    rng = np.random.default_rng(0)
    groups = np.arange(900) % 3
    src = rng.integers(0, 900, size=9000)
    dst = np.where(
        rng.random(9000) < 0.9,
        rng.integers(0, 300, size=9000) * 3 + groups[src],
        rng.integers(0, 900, size=9000),
    )
    features = rng.normal(size=(900, 8)) + 0.5 * np.eye(8)[groups]
    return np.stack([src, dst]), features, dict(enumerate(groups.tolist()))


def main(folder: Path) -> Vesper:
    """Train, test, write a report, and try a second fit."""
    graph, features, labels = public_graph(folder) if PUBLIC.is_dir() else random_graph()
    nodes = np.random.default_rng(1).permutation(list(labels))
    train, test = np.split(nodes, [2 * len(nodes) // 3])
    small = {"epochs": 6, "width": 32}  # to finish in seconds; omit it for a better model
    model = Vesper(
        epsilon=4.0, ledger=folder / "ledger.sqlite", graph_name="people-2026-11", settings=small
    )
    model.fit(graph, features, labels, train=train)
    print(f"{model.metric_} on {len(test)} test nodes: {model.score(test, labels):.1f} %")
    print(f"classes of three of them: {model.predict(test[:3]).tolist()}")
    print(model.privacy_.verdict)
    page = model.report(folder / "report.html", ids=test, labels=labels)
    print(f"the page is {page.name}, {page.stat().st_size // 1024} KiB")
    loaded = Vesper.load(model.save(folder / "model.npz"))
    print(f"the saved model: {loaded.score(test, labels):.1f} %")
    again = model.fit(graph, features, labels, train=train)
    print(f"the same fit again, at no cost: {again.score(test, labels):.1f} %")
    try:
        model.set_params(seed=1).fit(graph, features, labels, train=train)
    except BudgetError as refused:
        print(f"another fit: {str(refused).splitlines()[0]}")
    return model


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
