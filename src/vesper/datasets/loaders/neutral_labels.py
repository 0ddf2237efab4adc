"""Labels and splits out of a neutral node table: only the nodes that have both."""

import numpy as np
from numpy.typing import NDArray

from vesper.datasets.loaders.offenders import Offenders
from vesper.datasets.loaders.parquet_rows import ParquetRows
from vesper.datasets.party_tables import LARGEST_LABEL, SPLITS

_NODES_AT_ONCE = 1 << 16
_NO_SPLIT, _UNKNOWN = len(SPLITS), len(SPLITS) + 1
_POSITION = {"train": 0, "val": 1, "test": 2, "none": _NO_SPLIT, None: _NO_SPLIT}

Labels = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8]]


def read_labels(nodes: ParquetRows, ids: NDArray[np.int64]) -> Labels:
    """Give ids, labels and splits (positions in `SPLITS`) of the labelled nodes.

    Raises:
        InputError: A split has another name, or a label is no class number.
    """
    wrong_split = Offenders(
        f"{nodes.path}, column split", f"{', '.join(SPLITS)} or none", "rename these splits"
    )
    wrong_label = Offenders(
        f"{nodes.path}, column label",
        f"classes from 0 to {LARGEST_LABEL}",
        "number the classes from 0",
    )
    kept: list[Labels] = []
    done = 0
    for batch in nodes.batches(["label", "split"], _NODES_AT_ONCE):
        rows = ids[done : done + batch.num_rows]
        done += batch.num_rows
        names = batch.column("split").to_pylist()
        splits = np.array([_POSITION.get(name, _UNKNOWN) for name in names])  # (rows,)
        unknown = np.flatnonzero(splits == _UNKNOWN)
        wrong_split.add((f"id {rows[k]}: {names[k]}" for k in unknown), count=len(unknown))
        is_labelled = batch.column("label").is_valid().to_numpy(zero_copy_only=False)
        keep = np.flatnonzero(is_labelled & (splits < _NO_SPLIT))
        labels = nodes.whole_numbers(batch.take(keep), "label", first=0)
        bad = np.flatnonzero((labels < 0) | (labels > LARGEST_LABEL))
        wrong_label.add((f"id {rows[keep[k]]}: {labels[k]}" for k in bad), count=len(bad))
        kept.append((rows[keep], labels.astype(np.int32), splits[keep].astype(np.int8)))
    wrong_split.refuse()
    wrong_label.refuse()
    return (
        np.concatenate([part[0] for part in kept]),
        np.concatenate([part[1] for part in kept]),
        np.concatenate([part[2] for part in kept]),
    )
