"""Sixteen message entries an addition: the innermost loop of a sum over neighbours.

    lanes  += messages[u, first : first + LANES]        (16 bits each, signed)
    out     = sum of lanes                              (32 bits each)

An entry is at most 64 in size, so a lane takes 511 of them before it could overflow; after 508 it
is emptied into 32 bits. Whole numbers all the way: the result is exact, whatever the order. This is
written for the machine, not for Numba: what a compiler makes of a loop over lanes in memory takes
three times as long, because it may not keep them in registers.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

from numba import types
from numba.extending import intrinsic

from vesper.graph.intrinsics import Typed, ask_for, ir

CAPACITY = 508
"""Messages that lanes take before they are emptied: 508 * 64 < 2^15."""

AHEAD = 16
"""Messages are asked for so many neighbours before they are read."""

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
                ahead = smaller(builder.add(index, LONG(AHEAD)), final)
                ask_for(builder, address(ahead, column))
                ask_for(builder, address(ahead, builder.add(last_column, LONG(size - 1))))
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

Arguments: neighbors, start, stop; messages, flat, and how many entries a node has; the first column
of the first part and of the last; out, flat, and where its row starts; entries a part, and parts:
two numbers that must stand in the code.
"""
