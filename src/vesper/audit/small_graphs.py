"""Small graphs to audit on, in memory, each built for one question.

| target | the canary joins | looks for a leak through |
| --- | --- | --- |
| `rows` | two training nodes of a ring | rows of a node, batch after batch |
| `rows`, canary nodes | a training node and all its neighbours, a star | rows of all of these |
| `held-out` | two validation nodes of the ring | rows that are sent but not counted |
| `weights` | a root of the first batch, a node of a rare kind | later roots, through weights |

There are two classes; training nodes come first, then validation, then test.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vesper.audit.canaries import Canaries, Unit, place_edges, place_nodes
from vesper.audit.trial import draw_pairs
from vesper.errors import InputError
from vesper.graph.foreign import graph_of_pairs
from vesper.graph.holdings import DataHoldings
from vesper.graph.ids import Ids
from vesper.graph.labels import LabelHoldings
from vesper.method.base import Method
from vesper.method.settings import Config
from vesper.session.run_spec import run_spec_for

AuditTarget = Literal["rows", "held-out", "weights"]
AUDIT_TARGETS: tuple[AuditTarget, ...] = ("rows", "held-out", "weights")

RING_TRAIN, RING_VAL, RING_TEST, REACH = 100, 40, 8, 2
STARS_VAL, STARS_TEST = 8, 8
FIRST_BATCH = 16
"""Number of roots in the first batch of the target `weights`."""

SMALL: dict[str, Any] = {"epochs": 1, "width": 8, "patience": 1000}
ONE_LAYER: dict[str, Any] = {**SMALL, "hops": 1, "dropout": 0.0, "weight_decay": 0.0}
SAMPLED: dict[AuditTarget, dict[str, Any]] = {  # for methods that sample neighbours
    "rows": {**ONE_LAYER, "epochs": 2, "max_degree": 20, "batch_size": 1, "width": 1},
    "held-out": {**ONE_LAYER, "epochs": 2, "max_degree": 20, "batch_size": 1, "width": 1},
    "weights": {
        **ONE_LAYER,
        "max_degree": 20,
        "batch_size": FIRST_BATCH,
        "width": 16,
        "learning_rate": 0.01,
    },
}


def settings_for(target: AuditTarget, method: Method) -> dict[str, Any]:
    """Settings that make a run quick and its leak easy to see."""
    return SAMPLED[target] if "max_degree" in method.defaults else SMALL


def canaries_for(
    target: AuditTarget, config: Config, *, count: int, unit: Unit = "edge"
) -> Canaries:
    """The graph of a target with its canaries: `count` on the ring or in stars, else one.

    Raises:
        InputError: canary nodes are combined with a target other than `rows`.
    """
    max_degree = config.privacy.max_degree
    if unit == "node":
        if target != "rows":
            raise InputError(f"--target: expected rows for canary nodes, got '{target}'")
        return stars(count=count, max_degree=max_degree)
    if target == "weights":
        any_roots = two_kinds(np.arange(FIRST_BATCH), max_degree=max_degree)
        schedule = run_spec_for(
            config, any_roots.data, any_roots.labels
        ).schedule  # public, like the seed
        return two_kinds(
            schedule.training_batches(0, 0).batch(0)[:FIRST_BATCH], max_degree=max_degree
        )
    return ring(split="train" if target == "rows" else "val", count=count)


def ring(*, split: str, count: int) -> Canaries:
    """Ring of training nodes 0 .. 99, then 40 for validation and 8 for test; random features."""
    num_nodes = RING_TRAIN + RING_VAL + RING_TEST
    around = [(v, (v + step) % num_nodes) for v in range(num_nodes) for step in range(1, REACH + 1)]
    rng = np.random.default_rng(0)
    features = rng.normal(size=(num_nodes, 4)) + 0.5 * (np.arange(num_nodes) % 2)[:, None]
    data = _data(features, around)
    labels = _labels(num_train=RING_TRAIN, num_val=RING_VAL, num_test=RING_TEST)
    return place_edges(data, labels, draw_pairs(data, labels, split=split, count=count, seed=1))


def stars(*, count: int, max_degree: int) -> Canaries:
    """Stars: each centre has `max_degree` neighbours with equal features and no other edges.

    All nodes of a star have the same message, so that the norm of their sum is as large as it can
    be: the worst case of the bound. The classes of stars alternate. Held-out nodes have no edges.
    """
    size = max_degree + 1
    centres = np.arange(count) * size
    edges = [(int(c), int(c) + leaf) for c in centres for leaf in range(1, size)]
    star_class = np.repeat(np.arange(count) % 2, size)
    classes = np.concatenate([star_class, np.arange(STARS_VAL + STARS_TEST) % 2])
    features = np.where(classes[:, None] > 0, 1.0, -1.0) * np.array([1.0, -1.0, 1.0])
    labels = _labels(num_train=count * size, num_val=STARS_VAL, num_test=STARS_TEST)
    labels = replace(labels, labels=classes.astype(np.int64))
    return place_nodes(_data(features, edges), labels, centres)


def two_kinds(first_batch: NDArray[np.int64], *, max_degree: int) -> Canaries:
    """Roots of the first batch have plain neighbours only, those of the second rare ones only.

    Args:
        first_batch: training nodes of the first batch, half of all.
        max_degree: number of neighbours of a root.
    """
    num_train, num_held_out = 2 * len(first_batch), 4
    num_labelled = num_train + 2 * num_held_out
    plain = np.arange(num_labelled, num_labelled + max_degree)
    rare = np.arange(plain[-1] + 1, plain[-1] + 1 + max_degree)
    canary = int(rare[-1]) + 1
    in_first = np.isin(np.arange(num_labelled), first_batch)
    first = in_first | (np.arange(num_labelled) >= num_train)
    neighbours = {root: plain if first[root] else rare for root in range(num_labelled)}
    edges = [(root, int(node)) for root, nodes in neighbours.items() for node in nodes]
    edges = [edge for edge in edges if edge[0] != first_batch[0] or edge[1] != plain[0]]
    is_rare = np.zeros(canary + 1, dtype=bool)
    is_rare[rare[0] :] = True
    data = _data(_features_of_kinds(is_rare), edges)
    labels = _labels(num_train=num_train, num_val=num_held_out, num_test=num_held_out)
    return place_edges(data, labels, np.array([[first_batch[0], canary]]))


def _features_of_kinds(is_rare: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Four features that depend on the kind, and one that is always 0."""
    kind = np.where(is_rare[:, None], 1.0, -1.0) * np.array([1.0, -1.0, 1.0, -1.0])
    return np.concatenate([kind, np.zeros((len(is_rare), 1))], axis=1)


def _data(features: NDArray[np.float64], edges: Iterable[tuple[int, int]]) -> DataHoldings:
    graph, counts = graph_of_pairs(np.array(list(edges)).T, num_nodes=len(features))
    return DataHoldings(
        ids=Ids(pa.array(np.arange(len(features)))),
        features=features.astype(np.float32),
        graph=graph,
        counts=counts,
    )


def _labels(*, num_train: int, num_val: int, num_test: int) -> LabelHoldings:
    counts = [num_train, num_val, num_test]
    return LabelHoldings(
        path=Path("small graph"),
        ids=Ids(pa.array(np.arange(sum(counts)))),
        classes=(0, 1),
        labels=(np.arange(sum(counts)) % 2).astype(np.int64),
        splits=np.repeat(np.array([0, 1, 2], dtype=np.int8), counts),
    )
