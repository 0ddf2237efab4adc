"""Ids in, predictions out: the files of `vesper predict`.

in    a table, .parquet or .csv, with a column `id`, and `label` to measure by; any other file:
      one id a line
out   id, then a probability a class (`p_CLASS`) or `score`; .parquet or .csv

Ids that are no node have a row without values. Nothing is overwritten.
"""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from vesper.errors import InputError, VesperError, first_three
from vesper.graph.ids import Ids, read_ids
from vesper.graph.table_source import Column, open_table
from vesper.model.objective import Label
from vesper.serving.predictor import Predictions

SUFFIXES = (".parquet", ".csv")


def read_query_ids(path: Path) -> Ids:
    """Read the ids to predict.

    Raises:
        InputError: the file cannot be read, has no ids, or one twice.
    """
    if path.suffix in SUFFIXES:
        ids = read_ids(open_table(path))
    else:
        ids = _lines(path)
    if len(ids) == 0:
        raise InputError(f"{path}: expected at least one id, found none")
    return ids


def read_truth(path: Path) -> dict[str, Label]:
    """Read labels by id, to judge predictions by; of a table with splits, those of `test`.

    Raises:
        InputError: the file is no table with a column `label`, or no row is left to judge by.
    """
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: expected a table with a column label to measure by, got lines")
    source = open_table(path)
    source.require("id", "label")
    has_splits = "split" in source.columns
    truth: dict[str, Label] = {}
    for batch in source.batches(["id", "label", *(["split"] if has_splits else [])]):
        columns = [column.to_pylist() for column in batch.columns]
        for text, label, *split in zip(*columns, strict=True):
            if label is not None and split in ([], ["test"]):
                truth[str(text)] = label
    if not truth:
        where = "split 'test'" if has_splits else "a label"
        raise InputError(f"{path}: expected some rows with {where} to measure by, found none")
    return truth


def refuse_output(out: Path) -> None:
    """Refuse a file that is there already, or whose kind is not known.

    Raises:
        InputError: it is.
    """
    if out.suffix not in SUFFIXES:
        raise InputError(f"--out: expected a name that ends in .parquet or .csv, got '{out.name}'")
    if os.path.lexists(out):
        raise InputError(f"{out}: is there already and is not overwritten; name another")
    if not out.parent.is_dir():
        raise InputError(f"{out.parent}: expected a folder to write into, found none")


def write_predictions(out: Path, ids: Ids, columns: list[str], found: Predictions) -> None:
    """Write one row an id, in the order of `ids`; whole or not at all.

    Raises:
        VesperError: it cannot be written.
    """
    texts = [str(value) for value in ids.values.to_pylist()]
    nothing = np.full(len(columns), np.nan)
    rows = np.stack([found.values.get(text, nothing) for text in texts])  # (ids, columns)
    arrays: list[Column] = [ids.values.cast(pa.int64() if ids.are_integers else pa.string())]
    arrays += [pa.array(rows[:, k], from_pandas=True) for k in range(len(columns))]  # NaN: null
    table = pa.Table.from_arrays(arrays, names=["id", *columns])
    partial = out.with_name(f".{out.name}.partial")
    try:
        if out.suffix == ".csv":
            pa_csv.write_csv(table, partial)
        else:
            pq.write_table(table, partial)
        os.replace(partial, out)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise VesperError(f"{out}: cannot be written ({error.strerror or error})") from None


def _lines(path: Path) -> Ids:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text, one id a line ({error})") from None
    texts = [line.strip() for line in lines if line.strip()]
    repeated = [text for text, count in Counter(texts).items() if count > 1]
    if repeated:
        raise InputError(
            f"{path}: {len(repeated)} ids stand on more than one line ({first_three(repeated)})"
        )
    return Ids(pa.array(texts, type=pa.large_string()))
