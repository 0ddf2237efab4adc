"""Which columns of a neutral node table are features, and whether their values can be used."""

import re
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vesper.datasets.loaders.offenders import Offenders
from vesper.datasets.loaders.parquet_rows import ParquetRows
from vesper.errors import InputError

_NUMBERED = re.compile(r"f\d+")


class FeatureColumns:
    """The numbers `f0..fk`, or the one list `x`; nothing else is a feature."""

    def __init__(self, nodes: ParquetRows) -> None:
        numbered = [name for name in nodes.schema.names if _NUMBERED.fullmatch(name)]
        if ("x" in nodes.schema.names) == bool(numbered):
            raise InputError(
                f"{nodes.path}: expected features either in f0..fk or in x, found "
                f"{'both' if numbered else 'neither'}; keep one of them"
            )
        self.names = sorted(numbered, key=lambda name: int(name[1:])) or ["x"]
        self.fields = [pa.field(name, _stored_type(nodes, name)) for name in self.names]
        self._odd = {
            name: Offenders(
                f"{nodes.path}, column {name}",
                "finite numbers in every row",
                "fill or drop these rows",
            )
            for name in self.names
        }

    def arrays(self, batch: pa.RecordBatch, ids: NDArray[np.int64]) -> list["pa.Array[Any]"]:
        """The feature columns of one batch; rows that are not finite are remembered."""
        arrays = []
        for field in self.fields:
            values = batch.column(field.name).cast(field.type)
            bad = np.flatnonzero(_is_bad(values))
            self._odd[field.name].add((f"id {ids[row]}" for row in bad), count=len(bad))
            arrays.append(values)
        return arrays

    def refuse(self) -> None:
        """Raise for the first column in which a row was not finite."""
        for odd in self._odd.values():
            odd.refuse()


def _is_bad(values: "pa.Array[Any]") -> NDArray[np.bool_]:
    """One entry a row: whether it holds a null, a NaN or an infinity."""
    bad = np.array(values.is_null().to_numpy(zero_copy_only=False), bool)  # (rows,)
    present = values.drop_null()
    flat = present.flatten() if isinstance(present, pa.FixedSizeListArray) else present
    numbers = flat.to_numpy(zero_copy_only=False)  # a null inside a list becomes NaN
    if len(present):
        bad[~bad] = ~np.isfinite(numbers.reshape(len(present), -1)).all(axis=1)
    return bad


def _stored_type(nodes: ParquetRows, name: str) -> pa.DataType:
    """float32, or for lists also uint8, which holds bags of words in a quarter of the space."""
    kind = nodes.schema.field(name).type
    stored: pa.DataType
    if name != "x" and (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        return pa.float32()
    if name == "x" and pa.types.is_fixed_size_list(kind):
        if pa.types.is_uint8(kind.value_type):
            stored = pa.list_(pa.uint8(), kind.list_size)
            return stored
        if pa.types.is_floating(kind.value_type):
            stored = pa.list_(pa.float32(), kind.list_size)
            return stored
    expected = "a fixed-size list of float32 or uint8" if name == "x" else "numbers"
    raise InputError(
        f"{nodes.path}, column {name}: expected {expected}, found {kind}; change its type"
    )
