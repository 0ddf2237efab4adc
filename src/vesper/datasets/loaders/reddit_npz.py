"""Reddit as the pair of .npz files that DGL distributes.

* `reddit_data.npz`: `feature` (nodes, width), `label` (nodes,), `node_types` (nodes,) with
  1, 2, 3 for train, val, test.
* `reddit_graph.npz`: a scipy COO matrix with `row`, `col`, `shape`; every undirected edge is in it
  twice, once per direction.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.datasets.loaders.row_readers import NpzRows, Offenders
from vesper.datasets.party_tables import (
    LARGEST_LABEL,
    edges_of_keys,
    write_edges,
    write_labels,
    write_vectors,
)
from vesper.errors import InputError
from vesper.progress import Progress

LAYOUT = "a Reddit folder with reddit_data.npz and reddit_graph.npz"

_REMEDY = "download it again"
_NODES_AT_ONCE = 1 << 14
_EDGES_AT_ONCE = 1 << 22


def find(source: Path) -> Path | None:
    """Return the folder if it has at least one of the two files."""
    files = (source / "reddit_data.npz", source / "reddit_graph.npz")
    return source if any(file.is_file() for file in files) else None


def write(source: Path, folder: Path, progress: Progress) -> None:
    """Check both files and write them as party folders, block by block."""
    data = NpzRows(source / "reddit_data.npz")
    graph = NpzRows(source / "reddit_graph.npz")
    shape = data.shape("feature")
    if len(shape) != 2:
        raise InputError(f"{data.path}, array 'feature': expected a matrix, found shape {shape}")
    num_nodes, width = shape
    _write_labels(data, num_nodes, folder)
    write_vectors(folder, _features(data, num_nodes, progress), width=width)
    keys = _read_keys(graph, num_nodes, progress)
    write_edges(folder, edges_of_keys(keys, num_nodes))


def _write_labels(data: NpzRows, num_nodes: int, folder: Path) -> None:
    labels = _one_per_node(data, "label", num_nodes)
    bad = np.flatnonzero((labels < 0) | (labels > LARGEST_LABEL))
    odd = Offenders(f"{data.path}, array 'label'", f"classes from 0 to {LARGEST_LABEL}", _REMEDY)
    odd.add((f"node {node}: {labels[node]}" for node in bad), count=len(bad))
    odd.refuse()
    types = _one_per_node(data, "node_types", num_nodes)
    bad = np.flatnonzero((types < 1) | (types > 3))
    odd = Offenders(f"{data.path}, array 'node_types'", "1, 2 or 3 (train, val, test)", _REMEDY)
    odd.add((f"node {node}: {types[node]}" for node in bad), count=len(bad))
    odd.refuse()
    splits = (types - 1).astype(np.int8)
    write_labels(folder, np.arange(num_nodes), labels.astype(np.int32), splits)


def _features(data: NpzRows, num_nodes: int, progress: Progress) -> Iterator[NDArray[np.float32]]:
    odd = Offenders(f"{data.path}, array 'feature'", "finite numbers", _REMEDY)
    done = 0
    for block in data.blocks("feature", rows_at_once=_NODES_AT_ONCE):
        if block.dtype.kind not in "fiu":
            raise InputError(
                f"{data.path}, array 'feature': expected numbers, found {block.dtype}; {_REMEDY}"
            )
        with np.errstate(over="ignore"):  # values beyond float32 become infinite and are refused
            x = block.astype(np.float32)
        bad = np.flatnonzero(~np.isfinite(x).all(axis=1))
        odd.add((f"node {done + row}" for row in bad), count=len(bad))
        done += len(x)
        progress("nodes", done, num_nodes)
        yield x
    odd.refuse()


def _read_keys(graph: NpzRows, num_nodes: int, progress: Progress) -> NDArray[np.int64]:
    """Read every undirected pair once, as `smaller * num_nodes + larger`, sorted."""
    shape = graph.whole("shape").tolist()
    if shape != [num_nodes, num_nodes]:
        raise InputError(
            f"{graph.path}, array 'shape': expected {num_nodes} by {num_nodes}, one row per node "
            f"of reddit_data.npz, found {shape}; use files of the same version"
        )
    num_rows, num_cols = graph.shape("row"), graph.shape("col")
    if num_rows != num_cols or len(num_rows) != 1:
        raise InputError(
            f"{graph.path}: expected 'row' and 'col' of equal length, found {num_rows} and "
            f"{num_cols}; {_REMEDY}"
        )
    total = num_rows[0]
    keys = np.empty(total, np.int64)
    odd = Offenders(f"{graph.path}, arrays 'row', 'col'", f"nodes below {num_nodes}", _REMEDY)
    done = 0
    for rows, cols in zip(_ends(graph, "row"), _ends(graph, "col"), strict=True):
        low, high = np.minimum(rows, cols), np.maximum(rows, cols)
        bad = np.flatnonzero((low < 0) | (high >= num_nodes))
        odd.add((f"({rows[edge]}, {cols[edge]})" for edge in bad), count=len(bad))
        keys[done : done + len(low)] = low * num_nodes + high
        done += len(low)
        progress("edges", done, total)
    odd.refuse()
    keys.sort()
    is_first = np.ones(total, bool)
    is_first[1:] = keys[1:] != keys[:-1]
    return keys[is_first]


def _ends(graph: NpzRows, name: str) -> Iterator[NDArray[np.int64]]:
    for block in graph.blocks(name, rows_at_once=_EDGES_AT_ONCE):
        yield _whole_numbers(graph, name, block)


def _one_per_node(data: NpzRows, name: str, num_nodes: int) -> NDArray[np.int64]:
    shape = data.shape(name)
    if shape != (num_nodes,):
        raise InputError(
            f"{data.path}, array '{name}': expected one number per node, ({num_nodes},), "
            f"found {shape}; {_REMEDY}"
        )
    return _whole_numbers(data, name, data.whole(name))


def _whole_numbers(file: NpzRows, name: str, values: NDArray[Any]) -> NDArray[np.int64]:
    if values.dtype.kind not in "iu":
        raise InputError(
            f"{file.path}, array '{name}': expected whole numbers, found {values.dtype}; {_REMEDY}"
        )
    return values.astype(np.int64)
