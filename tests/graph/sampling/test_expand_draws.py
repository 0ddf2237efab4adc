"""The generator: published values, and chi-square tests that wrong generators must fail."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import chi2

from vesper.graph.sampling.expand import GAMMA, absorb, below, hop_key, mix

MASK = (1 << 64) - 1


def words(state: int, count: int) -> list[int]:
    return [int(mix(np.uint64((state + k * int(GAMMA)) & MASK))) for k in range(1, count + 1)]


def is_uniform(counts: list[int]) -> bool:
    expected = sum(counts) / len(counts)
    statistic = sum((count - expected) ** 2 / expected for count in counts)
    return bool(chi2.sf(statistic, len(counts) - 1) > 1e-4)


def test_words_are_splitmix64() -> None:
    # The published first words of SplitMix64 from state 1234567.
    assert words(1234567, 3) == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_keys_differ_in_every_part() -> None:
    keys = {
        int(hop_key(seed, step, hop))
        for seed in (0, 1, 2, MASK)
        for step in (0, 1, 2, MASK)
        for hop in (1, 2, 3)
    }
    assert len(keys) == 4 * 4 * 3
    assert hop_key(1, 2, 3) == hop_key(1, 2, 3)
    assert isinstance(hop_key(1, 2, 3), np.uint64)


def test_absorb_is_one_to_one_in_the_node() -> None:
    key = hop_key(0, 0, 1)
    assert len({absorb(key, np.uint64(node)) for node in range(10_000)}) == 10_000


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 50, (1 << 32) - 1])
def test_below_stays_below(bound: int) -> None:
    counter = np.uint64(9)
    for _ in range(200):
        counter_after, value = below(counter, np.uint64(bound))
        assert 0 <= value < bound
        counter = np.uint64(counter_after)


def remainder_counts(draw: Callable[[np.uint64, np.uint64], tuple[int, int]]) -> list[int]:
    """Count value mod 3 for the bound with the greatest bias: 4 words for 3 values."""
    counts, counter = [0, 0, 0], np.uint64(5)
    for _ in range(6000):
        counter_after, value = draw(counter, np.uint64(3 << 30))
        counts[int(value) % 3] += 1
        counter = np.uint64(counter_after)
    return counts


def test_below_has_no_bias_but_a_plain_multiply_has() -> None:
    def without_redraw(counter: np.uint64, bound: np.uint64) -> tuple[int, int]:
        after = (int(counter) + int(GAMMA)) & MASK
        return after, (int(mix(np.uint64(after))) >> 32) * int(bound) >> 32

    def with_redraw(counter: np.uint64, bound: np.uint64) -> tuple[int, int]:
        after, value = below(counter, bound)
        return int(after), int(value)

    assert is_uniform(remainder_counts(with_redraw))
    assert not is_uniform(remainder_counts(without_redraw))


def test_a_redraw_consumes_one_more_word() -> None:
    bound = 3 << 30
    refused = (1 << 32) % bound
    for state in range(200):
        expected_words = words(state, 20)
        used = next(k for k, w in enumerate(expected_words) if (w >> 32) * bound % 2**32 >= refused)
        counter, value = below(np.uint64(state), np.uint64(bound))
        assert int(counter) == (state + (used + 1) * int(GAMMA)) & MASK
        assert int(value) == (expected_words[used] >> 32) * bound >> 32
