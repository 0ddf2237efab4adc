"""Files of `vesper predict`: ids in, predictions out.

    in    a .parquet or .csv table with a column `id`, and `label` to measure against;
          any other file: one id per line
    out   .parquet or .csv: id, then one probability per class (`p_CLASS`), or `score`

Ids that are no node get a row without values. Nothing is overwritten.
"""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from vesper.errors import InputError, VesperError, first_three
from vesper.files import replacement_of
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
    ids = read_ids(open_table(path)) if path.suffix in SUFFIXES else _lines(path)
    if len(ids) == 0:
        raise InputError(f"{path}: expected at least one id, found none")
    return ids


def read_truth(path: Path) -> dict[str, Label]:
    """Read labels by id to measure predictions against; only split `test` if there are splits.

    Raises:
        InputError: the file is no table with a column `label`, or has no row to measure against.
    """
    if path.suffix not in SUFFIXES:
        raise InputError(
            f"{path}: expected a table with a column label to measure against, got lines of text; "
            f"use a .parquet or .csv file"
        )
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
        raise InputError(f"{path}: expected some rows with {where} to measure against, found none")
    return truth


def refuse_output(out: Path) -> None:
    """Refuse an output file that already exists, has an unknown suffix, or has no folder.

    Raises:
        InputError: the file cannot be used.
    """
    if out.suffix not in SUFFIXES:
        raise InputError(f"--out: expected a name that ends in .parquet or .csv, got '{out.name}'")
    if os.path.lexists(out):
        raise InputError(f"{out}: already exists and will not be overwritten; choose another path")
    if not out.parent.is_dir():
        raise InputError(f"{out.parent}: expected a folder to write into, found none")


def write_predictions(out: Path, ids: Ids, columns: list[str], predictions: Predictions) -> None:
    """Write one row per id, in the order of `ids`, atomically.

    Raises:
        VesperError: the file cannot be written.
    """
    texts = [str(value) for value in ids.values.to_pylist()]
    missing = np.full(len(columns), np.nan)
    rows = np.stack([predictions.values.get(text, missing) for text in texts])  # (ids, columns)
    arrays: list[Column] = [ids.values.cast(pa.int64() if ids.are_integers else pa.string())]
    arrays += [pa.array(rows[:, k], from_pandas=True) for k in range(len(columns))]  # NaN: null
    table = pa.Table.from_arrays(arrays, names=["id", *columns])
    try:
        with replacement_of(out) as file:
            if out.suffix == ".csv":
                pa_csv.write_csv(table, file)
            else:
                pq.write_table(table, file)
    except OSError as error:
        raise VesperError(f"{out}: cannot be written ({error.strerror or error})") from None


def _lines(path: Path) -> Ids:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text, one id per line ({error})") from None
    texts = [line.strip() for line in lines if line.strip()]
    repeated = [text for text, count in Counter(texts).items() if count > 1]
    if repeated:
        raise InputError(
            f"{path}: {len(repeated)} ids are on more than one line ({first_three(repeated)}); "
            f"expected each id once"
        )
    return Ids(pa.array(texts, type=pa.large_string()))
