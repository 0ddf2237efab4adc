"""Contents of a data party's folder: ids, edge-free features and the graph.

The first open reads and checks the tables and leaves a cache next to them
(`.vesper-cache/<key>/`); later opens map it into memory and are instant. The key covers the names,
sizes, times and ends of the files, so changed tables are read again: even a table of the same size
whose modification time was set back, because its change time (ctime) cannot be set. A cache appears
whole or not at all, and a damaged one is rebuilt; if the folder cannot be written, a temporary
folder is used.

Nodes are numbered by ascending id, whatever the order of the rows. So the same graph in another
row order is the same graph with the same budget, and the row order, which may follow the degree,
goes no further.
"""

import hashlib
import json
import shutil
import tempfile
import weakref
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from vesper.errors import InputError, VesperError
from vesper.files import map_array, partial_folder
from vesper.graph.csr import EdgeCounts, build_csr
from vesper.graph.features import Features, reorder, write_features
from vesper.graph.graph import Graph
from vesper.graph.ids import Ids, read_ids
from vesper.graph.table_source import Source, open_source
from vesper.progress import Progress, no_progress

CACHE = ".vesper-cache"
FORMAT = 3


@dataclass(frozen=True, eq=False)
class DataHoldings:
    """Ids, features (num_nodes, num_features) and graph, all by ascending id."""

    ids: Ids
    features: Features
    graph: Graph
    counts: EdgeCounts


def open_data(folder: Path | str, *, progress: Progress = no_progress) -> DataHoldings:
    """Open a data party's folder with the tables `nodes` and `edges`, Parquet or CSV."""
    folder = Path(folder)
    nodes, edges = open_source(folder, "nodes"), open_source(folder, "edges")
    key = _key(nodes, edges)
    cached = folder / CACHE / key
    holdings = _map(cached) if cached.is_dir() else None
    if holdings is not None:
        return holdings
    with ExitStack() as stack:
        try:
            (folder / CACHE).mkdir(exist_ok=True)
            # A refused folder is left without a trace.
            stack.callback(_remove_if_empty, folder / CACHE)
            partial = stack.enter_context(partial_folder(folder / CACHE, "partial-"))
        except OSError:
            return _open_uncached(nodes, edges, progress)
        holdings = _build(partial, nodes, edges, progress)
        _move_into_place(partial, cached)
        return holdings


def _open_uncached(nodes: Source, edges: Source, progress: Progress) -> DataHoldings:
    """Build in a temporary folder that is removed together with the holdings."""
    with ExitStack() as stack:
        temporary = partial_folder(Path(tempfile.gettempdir()), "vesper-graph-")
        holdings = _build(stack.enter_context(temporary), nodes, edges, progress)
        weakref.finalize(holdings, stack.pop_all().close)
        return holdings


def _build(folder: Path, nodes: Source, edges: Source, progress: Progress) -> DataHoldings:
    """Write the cache and map it.

    Raises:
        InputError: A table is refused.
        VesperError: The cache cannot be written, for example because the disk is full.
    """
    try:
        _write(folder, nodes, edges, progress)
    except OSError as error:
        why = error.strerror or str(error).splitlines()[0]
        raise VesperError(f"{folder.parent}: cannot be written ({why}); free some space") from None
    holdings = _map(folder)
    if holdings is None:
        raise VesperError(f"{folder}: changed while it was being written; open the folder again")
    return holdings


def _write(folder: Path, nodes: Source, edges: Source, progress: Progress) -> None:
    """Write ids and features, then the graph."""
    ids = read_ids(nodes)
    if len(ids) == 0:
        raise InputError(f"{nodes.path}: expected at least one row, found none")
    order = ids.order()
    ascending = Ids(ids.values.take(order))
    with pa.OSFile(str(folder / "ids.arrow"), "wb") as sink:
        table = pa.table({"id": ascending.values})
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    write_features(nodes, ids, folder / "features.npy", progress=progress)
    if (np.diff(order) < 0).any():
        reorder(folder / "features.npy", order)
    indptr, neighbors, counts = build_csr(edges, ascending, progress=progress)
    np.save(folder / "indptr.npy", indptr)
    np.save(folder / "neighbors.npy", neighbors)
    (folder / "counts.json").write_text(json.dumps(asdict(counts)))


def _map(folder: Path) -> DataHoldings | None:
    """Map a finished cache into memory, read-only; return None if it is damaged."""
    try:
        with pa.memory_map(str(folder / "ids.arrow")) as source:
            ids = pa.ipc.open_file(source).read_all().column("id").combine_chunks()
        indptr = map_array(folder / "indptr.npy")
        neighbors = map_array(folder / "neighbors.npy")
        features = map_array(folder / "features.npy")
        counts = EdgeCounts(**json.loads((folder / "counts.json").read_text()))
    except (OSError, ValueError, TypeError, KeyError, EOFError, pa.ArrowException):
        return None
    if not len(ids) == len(features) == len(indptr) - 1 or indptr[-1] != len(neighbors):
        return None
    graph = Graph(indptr=indptr, neighbors=neighbors, ids=Ids(ids))
    return DataHoldings(ids=Ids(ids), features=features, graph=graph, counts=counts)


def _key(*sources: Source) -> str:
    digest = hashlib.sha256(f"vesper graph cache {FORMAT}".encode())
    for source in sources:
        stat = source.path.stat()
        digest.update(f"|{source.path.name}|{stat.st_size}|".encode())
        digest.update(f"{stat.st_mtime_ns}|{stat.st_ctime_ns}|".encode())
        with source.path.open("rb") as file:
            digest.update(file.read(4096))
            file.seek(max(0, stat.st_size - 4096))
            digest.update(file.read(4096))
    return digest.hexdigest()[:16]


def _move_into_place(partial: Path, cached: Path) -> None:
    """Publish the cache in one step and remove the caches of older tables."""
    for old in cached.parent.iterdir():
        if not old.name.startswith("partial-") and (old != cached or _map(cached) is None):
            shutil.rmtree(old, ignore_errors=True)
    with suppress(OSError):  # another process was first, with the same content
        partial.replace(cached)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()
