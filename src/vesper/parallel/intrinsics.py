"""Four machine instructions that Numba does not offer; for use inside compiled code only."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

ir = import_module("llvmlite.ir")  # Numba's back end; it ships no type hints

Typed = tuple[Any, Callable[..., Any]]
"""What Numba expects from an intrinsic: its signature and a function that emits its code."""


def emit_prefetch(builder: Any, address: Any) -> None:
    """Emit the instruction that prefetches the cache line of an address."""
    number = ir.IntType(32)
    function = builder.module.declare_intrinsic(
        "llvm.prefetch",
        [cgutils.voidptr_t],
        ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number]),
    )
    read, into_every_cache, data = (ir.Constant(number, value) for value in (0, 3, 1))
    place = builder.bitcast(address, cgutils.voidptr_t)
    builder.call(function, [place, read, into_every_cache, data])


def _prefetch(typing_context: Any, array: Any, index: Any) -> Typed:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        emit_prefetch(builder, builder.gep(view.data, [arguments[1]]))
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _add_atomically(typing_context: Any, array: Any, index: Any, amount: Any) -> Typed:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(view.data, [arguments[1]])
        return builder.atomic_rmw("add", address, arguments[2], "seq_cst")

    return array.dtype(array, types.intp, array.dtype), generate


def _trailing_zeros(typing_context: Any, word: Any) -> Typed:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.true_bit)

    return word(word), generate


def _count_ones(typing_context: Any, word: Any) -> Typed:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return word(word), generate


# Numba gives an intrinsic the type of its code generator; these are the types of the instructions.

prefetch: Callable[[NDArray[Any], int | np.int64], None] = cast(Any, intrinsic(_prefetch))
"""Request the cache line of array[index], one-dimensional, without waiting for it. Never faults.

A core can have many memory reads in flight: requesting early and reading later turns one wait per
read into a single wait for all of them.
"""

add_atomically: Callable[[NDArray[np.int64], int, int], int] = cast(Any, intrinsic(_add_atomically))
"""array[index] += amount, atomically; returns the value before."""

trailing_zeros: Callable[[np.uint64], np.uint64] = cast(Any, intrinsic(_trailing_zeros))
"""Position of the lowest set bit of a word that is not 0."""

count_ones: Callable[[np.uint64], np.uint64] = cast(Any, intrinsic(_count_ones))
"""Number of set bits of a word."""
