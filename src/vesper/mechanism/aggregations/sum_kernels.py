"""The loop behind `neighbor_sum.py`: sixteen message entries per addition.

    lanes  += messages[u, first : first + LANES]        (16 bits each, signed)
    out     = sum of lanes                              (32 bits each)

    width       1      2, 3      4 .. 7      8 .. 15      16 and more
    lanes       1      2         4           8            16, at most four parts at a time

Entries are at most 64 in size, so a lane can take 511 of them before it could overflow; after 508
it is added to a 32-bit total. All arithmetic is on integers, so the result is exact, whatever the
order. The last part of a row ends where the row ends and may overlap the part before it, so that no
byte outside a message is ever read.

The innermost loop is written in LLVM instructions rather than in Numba, whose compiler may not keep
lanes in registers (docs/decisions/0015).
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from vesper.graph.graph import Neighbors
from vesper.mechanism.aggregations.aggregation import ROWS_PER_PIECE, Ints, run_rows
from vesper.mechanism.aggregations.grid import Messages
from vesper.parallel.compile_cache import cached_njit
from vesper.parallel.intrinsics import Typed, emit_prefetch, ir
from vesper.parallel.pool import Work, finish, take

COLUMNS_AT_ONCE = 64
"""Columns summed at a time: four parts of sixteen lanes."""

CAPACITY = 508
"""Messages added to the 16-bit lanes before they are emptied: 508 * 64 < 2^15."""

PREFETCH_DISTANCE = 16
"""Number of neighbours by which messages are prefetched ahead of being read."""

cgutils = import_module("numba.core.cgutils")  # parts of it have no type hints

BYTE, HALF, WORD, LONG = (ir.IntType(bits) for bits in (8, 16, 32, 64))


def sums_of_rows(
    starts: Ints, stops: Ints, neighbors: Neighbors, width: int, messages: Messages
) -> NDArray[np.int32]:
    """Sum messages over the neighbours of each receiver."""
    return run_rows(_sum_rows, starts, stops, neighbors, width, messages)


def _add_messages(
    typing_context: Any,
    neighbors: Any,
    start: Any,
    stop: Any,
    messages: Any,
    width: Any,
    first: Any,
    last: Any,
    out: Any,
    at: Any,
    lanes: Any,
    parts: Any,
) -> Typed:
    size, count = lanes.literal_value, parts.literal_value
    narrow, wide = ir.VectorType(HALF, size), ir.VectorType(WORD, size)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        begin, end, row_bytes, column, last_column, place = (
            arguments[k] for k in (1, 2, 4, 5, 6, 8)
        )
        views = [
            context.make_array(signature.args[k])(context, builder, arguments[k]) for k in (0, 3, 7)
        ]
        ids, entries, sums = (view.data for view in views)
        extend = builder.sext if signature.args[0].dtype.signed else builder.zext
        # The last part may overlap the one before: both write the same sums there.
        columns = [
            last_column if part == count - 1 else builder.add(column, LONG(part * size))
            for part in range(count)
        ]
        totals = [cgutils.alloca_once(builder, wide) for _ in columns]
        sixteens = [cgutils.alloca_once(builder, narrow) for _ in columns]
        for total in totals:
            builder.store(ir.Constant(wide, None), total)

        def address(index: Any, offset: Any) -> Any:
            node = builder.load(builder.gep(ids, [index]))
            node = node if node.type == LONG else extend(node, LONG)
            return builder.gep(entries, [builder.add(builder.mul(node, row_bytes), offset)])

        def smaller(one: Any, other: Any) -> Any:
            return builder.select(builder.icmp_signed("<", one, other), one, other)

        final = builder.sub(views[0].nitems, LONG(1))
        with cgutils.for_range_slice(builder, begin, end, LONG(CAPACITY), LONG) as (group, _):
            for sixteen in sixteens:
                builder.store(ir.Constant(narrow, None), sixteen)
            pause = smaller(builder.add(group, LONG(CAPACITY)), end)
            with cgutils.for_range_slice(builder, group, pause, LONG(1), LONG) as (index, _):
                ahead = smaller(builder.add(index, LONG(PREFETCH_DISTANCE)), final)
                emit_prefetch(builder, address(ahead, column))
                emit_prefetch(builder, address(ahead, builder.add(last_column, LONG(size - 1))))
                for offset, sixteen in zip(columns, sixteens, strict=True):
                    pointer = builder.bitcast(
                        address(index, offset), ir.VectorType(BYTE, size).as_pointer()
                    )
                    message = builder.sext(builder.load(pointer, align=1), narrow)
                    builder.store(builder.add(builder.load(sixteen), message), sixteen)
            for total, sixteen in zip(totals, sixteens, strict=True):
                more = builder.sext(builder.load(sixteen), wide)
                builder.store(builder.add(builder.load(total), more), total)
        for offset, total in zip(columns, totals, strict=True):
            target = builder.gep(sums, [builder.add(place, offset)])
            builder.store(builder.load(total), builder.bitcast(target, wide.as_pointer()), align=4)
        return context.get_dummy_value()

    index = types.intp
    return (
        types.void(
            neighbors, index, index, messages, index, index, index, out, index, lanes, parts
        ),
        generate,
    )


add_messages: Callable[..., None] = cast(Any, intrinsic(prefer_literal=True)(_add_messages))
"""Write the sum of messages[neighbors[k]] for start <= k < stop into out[at:].

Arguments: neighbors, start, stop; messages, flat, and entries per node; the first column of the
first part and of the last; out, flat, and where its row starts; entries per part, and the number of
parts: both must be literals.
"""


@cached_njit
def _sum_rows(
    work: Work,
    thread: int,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    neighbors: Neighbors,
    out: NDArray[np.int32],
    messages: Messages,
) -> None:
    """Write the sum of message[u] over u in neighbors[starts[k] : stops[k]] into row k of out."""
    width, stride = out.shape[1], messages.shape[1]
    flat, sums = messages.reshape(-1), out.reshape(-1)
    piece = take(work)
    while piece >= 0:
        for k in range(piece * ROWS_PER_PIECE, min((piece + 1) * ROWS_PER_PIECE, len(starts))):
            if width < 16:
                _sum_few(neighbors, starts[k], stops[k], flat, stride, width, sums, k * width)
            else:
                _sum_many(neighbors, starts[k], stops[k], flat, stride, width, sums, k * width)
        finish(work)
        piece = take(work)


@cached_njit
def _sum_few(
    neighbors: Neighbors,
    start: int,
    stop: int,
    flat: NDArray[np.int8],
    stride: int,
    width: int,
    out: NDArray[np.int32],
    at: int,
) -> None:
    """Sum a row of fewer than 16 columns."""
    if width >= 8:
        add_messages(neighbors, start, stop, flat, stride, 0, width - 8, out, at, 8, 2)
    elif width >= 4:
        add_messages(neighbors, start, stop, flat, stride, 0, width - 4, out, at, 4, 2)
    elif width >= 2:
        add_messages(neighbors, start, stop, flat, stride, 0, width - 2, out, at, 2, 2)
    else:
        add_messages(neighbors, start, stop, flat, stride, 0, 0, out, at, 1, 1)


@cached_njit
def _sum_many(
    neighbors: Neighbors,
    start: int,
    stop: int,
    flat: NDArray[np.int8],
    stride: int,
    width: int,
    out: NDArray[np.int32],
    at: int,
) -> None:
    """Sum a row of 16 columns or more, up to `COLUMNS_AT_ONCE` of them at a time."""
    for column in range(0, width, COLUMNS_AT_ONCE):
        first = min(column, width - 16)
        last = min(column + COLUMNS_AT_ONCE, width) - 16
        if last - first > 32:
            add_messages(neighbors, start, stop, flat, stride, first, last, out, at, 16, 4)
        elif last - first > 16:
            add_messages(neighbors, start, stop, flat, stride, first, last, out, at, 16, 3)
        elif last > first:
            add_messages(neighbors, start, stop, flat, stride, first, last, out, at, 16, 2)
        else:
            add_messages(neighbors, start, stop, flat, stride, first, last, out, at, 16, 1)
