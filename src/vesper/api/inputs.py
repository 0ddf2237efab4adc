"""Inputs of a fit: from the user's arrays to the tables of the two parties.

The tables are the same that `vesper simulate` reads from folders; node numbers serve as ids.
"""

from dataclasses import dataclass
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vesper.api.node_ids import Nodes, distinct_nodes, labels_at, node_numbers
from vesper.api.targets import Targets
from vesper.errors import InputError, first_three
from vesper.graph.features import Features
from vesper.graph.foreign import as_array, read_foreign
from vesper.graph.holdings import DataHoldings
from vesper.graph.ids import Ids
from vesper.graph.labels import LabelHoldings


@dataclass(frozen=True, kw_only=True)
class FitInputs:
    """Tables of each party, and the nodes that are held out for validation."""

    data: DataHoldings
    labels: LabelHoldings
    targets: Targets
    distinct: NDArray[Any]
    validation: Nodes


def prepare_inputs(
    graph: Any,
    features: Any,
    labels: Any,
    *,
    train: Any,
    validation: Any,
    targets: Targets,
    seed: int,
) -> FitInputs:
    """Check all inputs and divide them between the parties.

    Args:
        graph: any graph that `read_foreign` accepts.
        features: (num_nodes, num_features), or None when the graph holds them.
        labels: one per node, a mapping, or None when the graph holds them.
        train: node numbers, a mask, or None when the graph holds a mask.
        validation: the same; None for a fifth of `train`, drawn with the seed.
        targets: how labels are read.
        seed: seed of the draw of validation nodes.
    """
    shape = getattr(features, "shape", None)
    foreign = read_foreign(graph, num_nodes=int(shape[0]) if shape else _length(features))
    num_nodes = foreign.graph.num_nodes
    matrix = _features(_either(features, foreign.features, "features"), num_nodes=num_nodes)
    labels = _either(labels, foreign.labels, "labels")
    chosen = _either(train, foreign.train, "train")
    if validation is None and train is None:
        validation = foreign.validation
    labels_of = partial(labels_at, labels, read=targets.read, num_nodes=num_nodes)
    # In ascending order, as in party folders: the order of nodes must not change the fit.
    training = np.sort(distinct_nodes(chosen, "train", num_nodes=num_nodes))
    if validation is None:
        is_held_out = targets.split_validation(labels_of(training), seed=seed)
        training, held_out = training[~is_held_out], training[is_held_out]
    else:
        held_out = np.sort(distinct_nodes(validation, "validation", num_nodes=num_nodes))
        both = np.intersect1d(training, held_out)
        if len(both):
            raise InputError(
                f"validation: {len(both)} nodes are also in train ({first_three(both)}); "
                f"put each node in one of the two"
            )
    nodes = np.concatenate([training, held_out])
    distinct, codes = np.unique(labels_of(nodes), return_inverse=True)
    targets.refuse_few(distinct, codes, num_train=len(training))
    return FitInputs(
        data=DataHoldings(
            ids=Ids(pa.array(np.arange(num_nodes))),
            features=matrix,
            graph=foreign.graph,
            counts=foreign.counts,
        ),
        labels=LabelHoldings(
            path=Path("labels"),
            ids=Ids(pa.array(nodes)),
            classes=targets.names(distinct),
            labels=codes.astype(np.int64),
            splits=np.repeat(np.array([0, 1], dtype=np.int8), [len(training), len(held_out)]),
        ),
        targets=targets,
        distinct=distinct,
        validation=node_numbers(held_out, "validation", num_nodes=num_nodes),
    )


def _either(argument: Any, from_graph: Any, what: str) -> Any:
    if argument is None and from_graph is None:
        raise InputError(
            f"{what}: expected as an argument or in the graph, found in neither; pass {what}=..."
        )
    return from_graph if argument is None else argument


def _length(features: Any) -> int | None:
    return len(features) if hasattr(features, "__len__") else None


def _features(features: Any, *, num_nodes: int) -> Features:
    """Return features (num_nodes, num_features): bytes and booleans as uint8, else float32."""
    matrix = as_array(features, "features")
    if matrix.ndim != 2 or len(matrix) != num_nodes or matrix.shape[1] == 0:
        raise InputError(
            f"features: expected shape ({num_nodes}, num_features), one row per node of the graph, "
            f"got {matrix.shape}"
        )
    if matrix.dtype == object and all(isinstance(x, Real | np.bool_) for x in matrix.flat):
        matrix = matrix.astype(np.float64)  # a table with columns of several types
    if matrix.dtype.kind not in "fiub":
        raise InputError(f"features: expected numbers, got {matrix.dtype}; convert the columns")
    if matrix.dtype in (np.bool_, np.uint8):
        return np.ascontiguousarray(matrix, dtype=np.uint8)
    with np.errstate(over="ignore"):  # values that overflow become infinite and are refused
        values = np.ascontiguousarray(matrix, dtype=np.float32)
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        are_large = bool(np.isfinite(matrix[bad]).all())
        what = "values beyond 3.4e38" if are_large else "NaN or infinite values"
        remedy = "use another unit" if are_large else "fill them first"
        raise InputError(
            f"features: {len(bad)} rows contain {what} "
            f"({first_three(f'node {node}' for node in bad[:3])}); {remedy}"
        )
    return values
