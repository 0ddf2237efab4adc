"""Node ids (whole numbers or text, given by the user) and node numbers (positions by ascending id).

    position(id) = k  where  ids[k] = id,   or -1 if there is no such node

Whole numbers are looked up in a dense table if they are nearly consecutive and by binary search
otherwise; text goes through a hash table. Lookups run batch by batch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.graph.table_source import Column, Source

if TYPE_CHECKING:
    from vesper.graph.text_index import TextIndex

Positions = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ids:
    """Ids in the order of a table or of nodes: an int64 or a large_string array without nulls."""

    values: Column

    def __len__(self) -> int:
        return len(self.values)

    @property
    def are_integers(self) -> bool:
        """Whether ids are whole numbers and not text."""
        return pa.types.is_integer(self.values.type)

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        return np.asarray(self.values.to_numpy(zero_copy_only=False), dtype=np.int64)

    @cached_property
    def _dense(self) -> tuple[int, Positions] | None:
        """(smallest id, position of each id from there on) if the ids are nearly consecutive."""
        if not self.are_integers or len(self) == 0:
            return None
        low, high = int(self._numbers.min()), int(self._numbers.max())
        if high - low >= 4 * len(self) + 1024:
            return None
        table = np.full(high - low + 1, -1, dtype=np.int64)
        table[self._numbers - low] = np.arange(len(self))
        return low, table

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], Positions]:
        order = np.argsort(self._numbers, kind="stable")
        return self._numbers[order], order

    @cached_property
    def _texts(self) -> "TextIndex":
        from vesper.graph.text_index import TextIndex

        return TextIndex(self.values)

    def order(self) -> Positions:
        """Return positions by ascending id: numbers by value, text by its UTF-8 bytes."""
        return np.asarray(pc.sort_indices(self.values).to_numpy(), dtype=np.int64)

    def order_as_text(self) -> Positions | None:
        """Return positions by the bytes of ids written as text; None if already in that order.

        A table rewritten with its whole numbers as text has this order. A number n with d digits
        is ordered by (|n| 10^(19 - d), d); negative numbers come first.

        >>> Ids(pa.array([-1, 2, 10, 11])).order_as_text()
        array([0, 2, 3, 1])
        """
        if not self.are_integers:
            order = self.order()
        else:
            sizes = np.abs(self._numbers).view(np.uint64)  # right for -2^63 too
            powers = np.array([10**k for k in range(20)], dtype=np.uint64)
            digits = np.maximum(np.searchsorted(powers, sizes, side="right"), 1)
            aligned = sizes * powers[19 - digits]
            order = np.lexsort((digits, aligned, self._numbers >= 0))
        return None if (np.diff(order) > 0).all() else order

    def positions(self, wanted: Column) -> Positions:
        """Return the position of each wanted id, or -1 if it is not a node."""
        if not self.are_integers:
            return self._texts.positions(wanted)
        known = np.asarray(wanted.is_valid().to_numpy(zero_copy_only=False))
        numbers = np.asarray(wanted.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
        return np.where(known, self._positions_of_numbers(numbers), -1)

    def _positions_of_numbers(self, numbers: NDArray[np.int64]) -> Positions:
        if len(self) == 0:
            return np.full(len(numbers), -1, dtype=np.int64)
        if self._dense is not None:
            low, table = self._dense
            inside = (numbers >= low) & (numbers < low + len(table))
            return np.where(inside, table[np.where(inside, numbers - low, 0)], -1)
        ordered, order = self._sorted
        at = np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)
        return np.where(ordered[at] == numbers, order[at], -1)

    def find_texts(self, texts: Sequence[str]) -> Positions:
        """Return the positions of ids written as text, the form in which parties exchange them."""
        return self.positions_of_texts(pa.array(texts, type=pa.large_string()))

    def positions_of_texts(self, wanted: Column) -> Positions:
        """Return the position of each id written as text, or -1 if it is not a node."""
        return self.positions(numbers_of(wanted) if self.are_integers else wanted)

    def take(self, positions: Iterable[int]) -> list[Any]:
        """Return the ids at these positions as Python values."""
        return [self.values[int(position)].as_py() for position in positions]


def read_ids(source: Source, column: str = "id") -> Ids:
    """Read the id column of a node or label table; refuse missing, mixed or repeated ids."""
    source.require(column)
    chunks = [batch.column(0) for batch in source.batches([column])]
    values = as_ids(_combined(chunks), source, column)
    if source.is_csv and len(values):
        numbers = numbers_of(values)
        values = values if numbers.null_count else numbers
    counts = pc.value_counts(values)
    repeated = counts.filter(pc.greater(counts.field("counts"), pa.scalar(1))).field("values")
    if len(repeated):
        raise InputError(
            f"{source.path}, column {column}: {len(repeated)} ids appear in more than one row "
            f"({first_three(repeated.to_pylist())}); keep one row per id"
        )
    return Ids(values)


def as_ids(values: Column, source: Source, column: str, *, first_row: int = 0) -> Column:
    """Convert (a batch of) an id column to int64 or large_string; refuse missing values."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        values, kind = values.cast(kind.value_type), kind.value_type
    if pa.types.is_integer(kind):
        target: pa.DataType = pa.int64()
    elif is_text(kind):
        target = pa.large_string()
    else:
        raise InputError(
            f"{source.path}, column {column}: expected whole numbers or text as ids, got {kind}"
        )
    if values.null_count:
        rows = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))
        raise InputError(
            f"{source.path}, column {column}: {len(rows)} rows have no id "
            f"({first_three(f'row {first_row + row + 1}' for row in rows)}); give each row an id"
        )
    try:
        return values.cast(target)
    except pa.ArrowInvalid:
        raise InputError(
            f"{source.path}, column {column}: expected ids that fit a signed 64-bit integer, "
            f"got {kind}; renumber them or write them as text"
        ) from None


def match_ids(
    values: Column, source: Source, column: str, *, like: Ids, first_row: int = 0
) -> Column:
    """Convert a column that refers to nodes to the kind of the node ids.

    Text in a CSV file that cannot be a whole-number id becomes null: it is not a node, and the
    caller, which still has the text, can name it.
    """
    values = as_ids(values, source, column, first_row=first_row)
    if pa.types.is_integer(values.type) == like.are_integers:
        return values
    if source.is_csv:
        return numbers_of(values)
    expected, got = ("whole numbers", "text") if like.are_integers else ("text", "whole numbers")
    raise InputError(
        f"{source.path}, column {column}: expected {expected} like the node ids, got {got}; "
        f"write both tables with the same kind of id"
    )


_INTEGER = r"^(0|-?[1-9][0-9]{0,18})$"
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


def numbers_of(texts: Column) -> Column:
    """Parse text as 64-bit integers; null where it is not in canonical form.

    `007`, `+7` and `7.0` become null, so that distinct ids are never merged.
    """
    candidates = pc.if_else(pc.match_substring_regex(texts, _INTEGER), texts, None)
    try:
        numbers: Column = candidates.cast(pa.int64())
    except pa.ArrowInvalid:  # nineteen digits may or may not fit
        wide = [None if text is None else int(text) for text in candidates.to_pylist()]
        fitting = [k if k is not None and _SMALLEST <= k <= _LARGEST else None for k in wide]
        numbers = pa.array(fitting, type=pa.int64())
    return numbers


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is one of the Arrow string types."""
    return (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _combined(chunks: Sequence[Column]) -> Column:
    if not chunks:
        return pa.array([], type=pa.int64())
    array = pa.chunked_array(chunks)
    if is_text(array.type):
        array = array.cast(pa.large_string())  # one chunk may pass 2 GiB
    return array.combine_chunks()
