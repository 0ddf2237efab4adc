"""Inputs of a fit: from the user's arrays to the tables of the two parties.

The tables are the same that `vesper simulate` reads from folders; node numbers serve as ids where
the user gives none.
"""

from dataclasses import dataclass
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vesper.api.node_ids import Nodes, refuse_repeated
from vesper.api.node_names import NodeNames
from vesper.api.targets import Targets
from vesper.errors import InputError, first_three
from vesper.graph.features import Features
from vesper.graph.foreign import as_array, read_foreign
from vesper.graph.frames import columns_of, distinct_ids, index_of, is_frame, without_column
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
    ids: Ids | None
    """Ids of the nodes; None: their numbers."""
    validation_is_drawn: bool
    """Whether validation nodes were drawn from the training nodes, with the seed."""


def prepare_inputs(
    graph: Any,
    features: Any,
    labels: Any,
    *,
    train: Any,
    validation: Any,
    ids: Any = None,
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
        ids: ids of the nodes, one per row of the features, or the name of their column.
        targets: how labels are read.
        seed: seed of the draw of validation nodes.
    """
    if labels is None and train is None and _is_column(features):
        raise InputError(SCIKIT_LEARN_CALL)
    features, named = split_ids(features, ids)
    foreign = read_foreign(graph, num_nodes=num_rows(features), ids=named)
    num_nodes = foreign.graph.num_nodes
    matrix = feature_matrix(_either(features, foreign.features, "features"), num_nodes=num_nodes)
    labels = _either(labels, foreign.labels, "labels")
    chosen = _either(train, foreign.train, "train")
    if validation is None and train is None:
        validation = foreign.validation
    names = NodeNames(num_nodes, foreign.ids)
    labels_of = partial(names.labels_of, labels, read=targets.read)

    def distinct(nodes: Any, what: str) -> Nodes:
        return refuse_repeated(names.numbers(nodes, what), what, num_nodes=num_nodes)

    # In ascending order, as in party folders: the order of nodes must not change the fit.
    training = np.sort(distinct(chosen, "train"))
    is_drawn = validation is None
    if validation is None:
        is_held_out = targets.split_validation(labels_of(training), seed=seed)
        training, held_out = training[~is_held_out], training[is_held_out]
    else:
        held_out = np.sort(distinct(validation, "validation"))
        both = np.intersect1d(training, held_out)
        if len(both):
            raise InputError(
                f"validation: {len(both)} nodes are also in train ({first_three(both)}); "
                f"put each node in one of the two"
            )
    nodes = np.concatenate([training, held_out])
    values, codes = np.unique(labels_of(nodes), return_inverse=True)
    targets.refuse_few(values, codes, num_train=len(training))
    node_ids = foreign.ids or Ids(pa.array(np.arange(num_nodes)))
    return FitInputs(
        data=DataHoldings(
            ids=node_ids,
            features=matrix,
            graph=foreign.graph,
            counts=foreign.counts,
        ),
        labels=LabelHoldings(
            path=Path("labels"),
            ids=Ids(node_ids.values.take(pa.array(nodes))),
            classes=targets.names(values),
            labels=codes.astype(np.int64),
            splits=np.repeat(np.array([0, 1], dtype=np.int8), [len(training), len(held_out)]),
        ),
        targets=targets,
        distinct=values,
        validation=held_out,
        ids=foreign.ids,
        validation_is_drawn=is_drawn,
    )


SCIKIT_LEARN_CALL = (
    "fit: expected fit(graph, features, labels, train=...), got two arguments as scikit-learn "
    "passes them to every step of a Pipeline and for every split of a search. Rows of a graph "
    "cannot be split; use Vesper(...).for_nodes(graph, features), which fits and predicts node "
    "numbers or ids, such as GridSearchCV(model, {...}).fit(train_ids, labels_of_train_ids)"
)


def split_ids(features: Any, ids: Any) -> tuple[Any, Ids | None]:
    """Return the features without ids, and the ids: as given, a column, or a pandas index.

    Raises:
        InputError: the ids are not one different id per row.
    """
    if isinstance(ids, str):
        columns = columns_of(features) if is_frame(features) else {}
        if ids not in columns:
            raise InputError(
                f"ids: expected a column of the features or a list of ids, got '{ids}'"
                + (f"; columns are {', '.join(columns)}" if columns else "; pass a data frame")
            )
        features, ids = without_column(features, ids), columns[ids]
    elif ids is None:
        ids = index_of(features)
    if ids is None:
        return features, None
    return features, distinct_ids(as_ids(ids), "ids", num_nodes=num_rows(features))


def as_ids(ids: Any) -> NDArray[Any]:
    """Return ids as an array that keeps the kind of each."""
    return np.array(ids, dtype=object) if isinstance(ids, list | tuple) else as_array(ids, "ids")


def num_rows(features: Any) -> int | None:
    """Return the number of rows, or None if there are no features."""
    shape = getattr(features, "shape", None)
    return int(shape[0]) if shape else _length(features)


def _is_column(values: Any) -> bool:
    return values is not None and len(getattr(values, "shape", ())) == 1


def _either(argument: Any, from_graph: Any, what: str) -> Any:
    if argument is None and from_graph is None:
        raise InputError(
            f"{what}: expected as an argument or in the graph, found in neither; pass {what}=..."
        )
    return from_graph if argument is None else argument


def _length(features: Any) -> int | None:
    return len(features) if hasattr(features, "__len__") else None


def feature_matrix(features: Any, *, num_nodes: int) -> Features:
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
