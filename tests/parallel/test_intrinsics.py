import numpy as np
from numba import njit
from numpy.typing import NDArray

from vesper.parallel.intrinsics import count_ones, prefetch, trailing_zeros


@njit()
def bits_of(word: np.uint64) -> tuple[int, int]:
    return int(trailing_zeros(word)), int(count_ones(word))


@njit()
def prefetched(values: NDArray[np.int64], index: int) -> int:
    prefetch(values, index)
    return int(values[index])


def test_bits_of_words_with_one_or_two_bits_set() -> None:
    for low in range(64):
        for high in range(low, 64):
            word = np.uint64(1 << low | 1 << high)
            assert bits_of(word) == (low, 1 if low == high else 2)


def test_prefetch_is_emitted_and_changes_nothing() -> None:
    assert prefetched(np.arange(5), 3) == 3
    (assembly,) = prefetched.inspect_asm().values()
    assert "prefetch" in assembly or "prfm" in assembly
