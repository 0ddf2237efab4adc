"""The innermost loop of `neighbor_sum.py`: sixteen message entries per addition.

    lanes  += messages[u, first : first + LANES]        (16 bits each, signed)
    out     = sum of lanes                              (32 bits each)

Entries are at most 64 in size, so a lane can take 511 of them before it could overflow; after 508
it is added to a 32-bit total. All arithmetic is on integers, so the result is exact, whatever the
order. The last part of a row ends where the row ends and may overlap the part before it, so that no
byte outside a message is ever read.

It is written in LLVM instructions rather than in Numba, whose compiler may not keep
lanes in registers (docs/decisions/0015).
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

from numba import types
from numba.extending import intrinsic

from vesper.parallel.intrinsics import Typed, emit_prefetch, ir

CAPACITY = 508
"""Messages added to the 16-bit lanes before they are emptied: 508 * 64 < 2^15."""

PREFETCH_DISTANCE = 16
"""Number of neighbours by which messages are prefetched ahead of being read."""

cgutils = import_module("numba.core.cgutils")  # parts of it have no type hints

BYTE, HALF, WORD, LONG = (ir.IntType(bits) for bits in (8, 16, 32, 64))


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
