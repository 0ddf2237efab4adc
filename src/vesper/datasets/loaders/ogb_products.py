"""ogbn-products as the official downloader leaves it: gzip-compressed CSV without headers.

    products/raw/num-node-list.csv.gz          one number
    products/raw/num-edge-list.csv.gz          one number
    products/raw/node-feat.csv.gz              one line per node: its features
    products/raw/node-label.csv.gz             one line per node: its class
    products/raw/edge.csv.gz                   one line per undirected edge: two node numbers
    products/split/sales_ranking/{train,valid,test}.csv.gz     one node number per line

The downloader renames `products` to `ogbn_products`; either name is recognised.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from vesper.datasets.loaders.row_readers import Offenders
from vesper.datasets.party_tables import LARGEST_LABEL, write_edges, write_labels, write_vectors
from vesper.errors import InputError
from vesper.progress import Progress

Number = TypeVar("Number", np.int64, np.float32)

_BLOCK_BYTES = 1 << 25


def width_of(path: Path) -> int:
    """Return the number of columns of the first line."""
    try:
        with gzip.open(path, "rb") as file:
            line = file.readline().strip()
    except FileNotFoundError:
        raise InputError(f"{path}: expected this file, found none; download it again") from None
    except (OSError, EOFError, zlib.error) as error:
        raise _not_gzip(path, error) from None
    if not line:
        raise InputError(f"{path}: expected rows of numbers, found none; download it again")
    return line.count(b",") + 1


def rows_of(path: Path, *, width: int, dtype: type[Number]) -> Iterator[NDArray[Number]]:
    """Yield the rows in order, in blocks of shape `(rows, width)`.

    Raises:
        InputError: The file is missing or not a gzip-compressed CSV, or has a line that is not
            `width` numbers.
    """
    columns = width_of(path)
    if columns != width:
        raise InputError(f"{path}: expected {width} columns, found {columns}; download it again")
    names = [str(column) for column in range(width)]
    kind = pa.from_numpy_dtype(np.dtype(dtype))
    try:
        with pa_csv.open_csv(  # decompresses because of the extension .gz
            path,
            read_options=pa_csv.ReadOptions(column_names=names, block_size=_BLOCK_BYTES),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(names, kind), null_values=[]
            ),
        ) as reader:
            for batch in reader:
                rows = np.empty((batch.num_rows, width), dtype)
                for column, values in enumerate(batch.columns):
                    rows[:, column] = values.to_numpy(zero_copy_only=False)
                yield rows
    except OSError as error:
        raise _not_gzip(path, error) from None
    except pa.ArrowInvalid as error:
        _refuse_lines(path, width, int if dtype is np.int64 else float)
        raise InputError(f"{path}: not readable as CSV ({error}); download it again") from None


def column_of(path: Path) -> NDArray[np.int64]:
    """Read a file with one whole number per line."""
    return np.concatenate([rows[:, 0] for rows in rows_of(path, width=1, dtype=np.int64)])


def _refuse_lines(path: Path, width: int, number: type[int] | type[float]) -> None:
    """Refuse and name lines that are not `width` numbers; slow, so only called after an error."""
    expected = f"{width} {'whole numbers' if number is int else 'numbers'} per line"
    odd = Offenders(str(path), expected, "download it again")
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
        for position, line in enumerate(file, start=1):
            if line.strip() and not _is_numbers(line.strip().split(","), width, number):
                odd.add([f"line {position}: {line.strip()[:40]!r}"], count=1)
    odd.refuse()


def _is_numbers(cells: list[str], width: int, number: type[int] | type[float]) -> bool:
    try:
        return len([number(cell) for cell in cells]) == width
    except ValueError:
        return False


def _not_gzip(path: Path, error: Exception) -> InputError:
    return InputError(f"{path}: not a complete gzip file ({error}); download it again")


LAYOUT = (
    "an ogbn-products folder (raw/edge.csv.gz, raw/node-feat.csv.gz, raw/node-label.csv.gz, "
    "split/sales_ranking/train.csv.gz, ...)"
)

_SPLIT_FILES = ("train.csv.gz", "valid.csv.gz", "test.csv.gz")  # as party_tables.SPLITS


def find(source: Path) -> Path | None:
    """Return the folder that has `raw` and `split`: the source, or one directly below it."""
    for folder in (source, source / "ogbn_products", source / "products"):
        if (folder / "raw").is_dir() and (folder / "split").is_dir():
            return folder
    return None


def write(source: Path, folder: Path, progress: Progress) -> None:
    """Check all files and write them as party folders, block by block."""
    num_nodes = _single_number(source / "raw" / "num-node-list.csv.gz")
    num_edges = _single_number(source / "raw" / "num-edge-list.csv.gz")
    _write_labels(source, folder, num_nodes)
    features = source / "raw" / "node-feat.csv.gz"
    write_vectors(folder, _features(features, num_nodes, progress), width=width_of(features))
    write_edges(folder, _edges(source / "raw" / "edge.csv.gz", num_nodes, num_edges, progress))


def _single_number(path: Path) -> int:
    numbers = column_of(path)
    if len(numbers) != 1 or numbers[0] < 0:
        raise InputError(
            f"{path}: expected one number, found {len(numbers)} lines; download it again"
        )
    return int(numbers[0])


def _features(path: Path, num_nodes: int, progress: Progress) -> Iterator[NDArray[np.float32]]:
    odd = Offenders(str(path), "finite numbers", "download it again")
    done = 0
    for x in rows_of(path, width=width_of(path), dtype=np.float32):
        bad = np.flatnonzero(~np.isfinite(x).all(axis=1))
        odd.add((f"row {done + row + 1}" for row in bad), count=len(bad))
        done += len(x)
        progress("nodes", done, num_nodes)
        yield x
    odd.refuse()
    _refuse_count(path, done, num_nodes, "num-node-list.csv.gz")


def _edges(
    path: Path, num_nodes: int, num_edges: int, progress: Progress
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    odd = Offenders(str(path), f"node numbers below {num_nodes}", "download it again")
    done = 0
    for pairs in rows_of(path, width=2, dtype=np.int64):
        bad = np.flatnonzero(((pairs < 0) | (pairs >= num_nodes)).any(axis=1))
        odd.add((f"row {done + row + 1}: {pairs[row].tolist()}" for row in bad), count=len(bad))
        done += len(pairs)
        progress("edges", done, num_edges)
        yield pairs[:, 0].copy(), pairs[:, 1].copy()
    odd.refuse()
    _refuse_count(path, done, num_edges, "num-edge-list.csv.gz")


def _write_labels(source: Path, folder: Path, num_nodes: int) -> None:
    path = source / "raw" / "node-label.csv.gz"
    labels = column_of(path)
    _refuse_count(path, len(labels), num_nodes, "num-node-list.csv.gz")
    bad = np.flatnonzero((labels < 0) | (labels > LARGEST_LABEL))
    odd = Offenders(str(path), f"classes from 0 to {LARGEST_LABEL}", "download it again")
    odd.add((f"row {row + 1}: {labels[row]}" for row in bad), count=len(bad))
    odd.refuse()
    splits = np.full(num_nodes, -1, np.int8)
    for split, name in enumerate(_SPLIT_FILES):
        _mark(splits, split, source / "split" / "sales_ranking" / name)
    ids = np.flatnonzero(splits >= 0)
    write_labels(folder, ids, labels[ids].astype(np.int32), splits[ids])


def _mark(splits: NDArray[np.int8], split: int, path: Path) -> None:
    """Record the nodes of one split file; refuse nodes that occur twice."""
    nodes = column_of(path)
    outside = (nodes < 0) | (nodes >= len(splits))
    odd = Offenders(str(path), f"node numbers below {len(splits)}", "download it again")
    odd.add(nodes[outside], count=int(outside.sum()))
    odd.refuse()
    repeated = np.bincount(nodes, minlength=len(splits)) > 1
    twice = np.flatnonzero(repeated | (splits >= 0) & np.isin(np.arange(len(splits)), nodes))
    odd = Offenders(str(path), "every node in one split only, once", "download it again")
    odd.add(twice, count=len(twice))
    odd.refuse()
    splits[nodes] = split


def _refuse_count(path: Path, count: int, expected: int, stated_in: str) -> None:
    if count != expected:
        raise InputError(
            f"{path}: expected {expected} rows as stated in {stated_in}, found {count}; "
            f"download it again"
        )
