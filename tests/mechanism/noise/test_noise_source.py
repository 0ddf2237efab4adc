import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from vesper.errors import InputError
from vesper.mechanism.noise import noise_source as threads_module
from vesper.mechanism.noise.exact_law import threshold_table
from vesper.mechanism.noise.noise_source import DRAWS_PER_BLOCK, NoiseSource, NoiseSpan, add_draws
from vesper.mechanism.noise.rounded_gaussian import RoundedGaussian


def draws(scale: float, count: int, *, seed: int = 0) -> NDArray[np.int32]:
    values = np.zeros(count, dtype=np.int32)
    NoiseSource.for_simulation(seed).add_gaussian_to(values, scale=scale)
    return values


def p_value(values: NDArray[np.int32], scale: float) -> float:
    """Chi-square test of the draws against the exact law of round(scale * N(0, 1))."""
    edges = np.arange(-int(3 * scale), int(3 * scale) + 1, max(1, int(scale / 4))) + 0.5
    probabilities = np.diff(stats.norm.cdf(np.concatenate([[-np.inf], edges, [np.inf]]) / scale))
    observed = np.histogram(values, bins=np.concatenate([[-np.inf], edges, [np.inf]]))[0]
    return float(stats.chisquare(observed, probabilities * len(values)).pvalue)


@pytest.mark.parametrize("scale", [1.0, 17.3, 640.0])
def test_draws_fit_the_law_and_not_one_three_percent_off(scale: float) -> None:
    values = draws(scale, 1_000_000)
    assert p_value(values, scale) > 0.001
    assert p_value(values, 0.97 * scale) < 1e-6
    assert p_value(values, 1.03 * scale) < 1e-6


def test_entries_are_independent_across_places() -> None:
    values = draws(100.0, 1_000_000).astype(np.float64)
    for lag in (1, 2, DRAWS_PER_BLOCK - 1, DRAWS_PER_BLOCK):
        assert abs(np.corrcoef(values[:-lag], values[lag:])[0, 1]) < 0.005


@pytest.mark.parametrize("scale", [5.0, 3000.0])  # a short guide, a long guide
def test_the_kernel_equals_a_count_of_thresholds_and_reports_ties(scale: float) -> None:
    table = threshold_table(RoundedGaussian(scale))
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**64, size=2000, dtype=np.uint64)
    chosen = rng.integers(0, len(table.high), size=600)
    for k, at in enumerate(chosen):  # ties, and neighbours of ties
        bits[k] = min(max(int(table.high[at]) + k % 3 - 1, 0), 2**64 - 1)
    out, ties = np.zeros(len(bits), dtype=np.int32), np.empty(len(bits), dtype=np.int64)
    num_ties = add_draws(bits, table.high, table.guide, table.shift, table.offset, out, ties)
    tied = set(ties[:num_ties].tolist())
    assert tied == set(np.flatnonzero(np.isin(bits, table.high)).tolist())
    assert len(tied) >= 200
    for k, (uniform, value) in enumerate(zip(bits, out, strict=True)):
        expected = int((table.high < uniform).sum()) - table.offset
        assert value == (0 if k in tied else expected)


def with_words(
    monkeypatch: pytest.MonkeyPatch, words: NDArray[np.uint64], further: dict[int, list[int]]
) -> NoiseSpan:
    """A span with these words, and with `further` words for ties, by entry."""

    def words_from(span: NoiseSpan, first: int, count: int) -> Callable[[int], NDArray[np.uint64]]:
        blocks = iter(
            [words[k : k + DRAWS_PER_BLOCK] for k in range(first, first + count, DRAWS_PER_BLOCK)]
        )
        return lambda count: next(blocks)

    monkeypatch.setattr(NoiseSpan, "_words", words_from)
    monkeypatch.setattr(
        NoiseSpan, "_further_words", lambda span, entry: lambda: further[entry].pop(0)
    )
    return NoiseSpan(bytes(32), start=0, count=1 << 20)


def test_a_tie_is_decided_by_more_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    table = threshold_table(RoundedGaussian(5.0))
    at = table.offset + 3
    for second, passed in ((int(table.low[at]) - 2, at), (int(table.low[at]) + 2, at + 1)):
        further = {40: [second]}
        words = np.array([0] * 40 + [int(table.high[at]), 2**63], dtype=np.uint64)
        values = np.zeros(2, dtype=np.int32)
        with_words(monkeypatch, words, further).add_gaussian_to(values, scale=5.0, first=40)
        assert values[0] == passed - table.offset
        assert further == {40: []}


def test_ties_of_later_blocks_and_stretches_are_decided_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = threshold_table(RoundedGaussian(5.0))
    at = table.offset + 3
    places = [1, DRAWS_PER_BLOCK + 2, 2 * DRAWS_PER_BLOCK + 1, 3 * DRAWS_PER_BLOCK + 4]
    words = np.full(3 * DRAWS_PER_BLOCK + 5, 2**63 + 2**50, dtype=np.uint64)
    words[places] = table.high[at]
    further = {place: [int(table.low[at]) - 2] for place in places[:-1]}
    further[places[-1]] = [int(table.low[at]) + 2]
    values = np.zeros(len(words), dtype=np.int32)
    with_words(monkeypatch, words, further).add_gaussian_to(values, scale=5.0)
    assert values[places].tolist() == [3, 3, 3, 4]
    assert not np.delete(values, places).any()
    assert further == {place: [] for place in places}


def test_the_number_of_threads_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = [1, 2, 3, 100]
    remaining = iter(counts)
    monkeypatch.setattr(threads_module, "threads_allowed", lambda: next(remaining))
    results = [draws(10.0, 3 * DRAWS_PER_BLOCK + 5) for _ in counts]
    assert next(remaining, None) is None  # each draw has called it once
    assert all(np.array_equal(each, results[0]) for each in results)


def test_errors_in_a_thread_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(span: NoiseSpan, entry: int) -> Callable[[], int]:
        raise RuntimeError("no bits left")

    table = threshold_table(RoundedGaussian(5.0))
    words = np.full(3 * DRAWS_PER_BLOCK, table.high[table.offset], dtype=np.uint64)
    span = with_words(monkeypatch, words, {})
    monkeypatch.setattr(NoiseSpan, "_further_words", broken)
    monkeypatch.setattr(threads_module, "threads_allowed", lambda: 2)
    with pytest.raises(RuntimeError, match="no bits left"):
        span.add_gaussian_to(np.zeros(3 * DRAWS_PER_BLOCK, dtype=np.int32), scale=5.0)


def test_sources() -> None:
    assert draws(10.0, 50).tolist() == draws(10.0, 50).tolist()
    assert draws(10.0, 50).tolist() != draws(10.0, 50, seed=1).tolist()
    source = NoiseSource.for_simulation(0)
    first, second = np.zeros(50, dtype=np.int32), np.zeros(50, dtype=np.int32)
    source.add_gaussian_to(first, scale=10.0)
    source.add_gaussian_to(second, scale=10.0)
    assert first.tolist() != second.tolist()
    assert NoiseSource.from_os().is_private
    assert not source.is_private
    once, again = np.zeros(50, dtype=np.int32), np.zeros(50, dtype=np.int32)
    NoiseSource.from_os().add_gaussian_to(once, scale=10.0)
    NoiseSource.from_os().add_gaussian_to(again, scale=10.0)
    assert once.tolist() != again.tolist()


def test_zero_noise_is_refused() -> None:
    with pytest.raises(InputError):
        draws(0.0, 3)
    with pytest.raises(InputError, match="contiguous"):
        NoiseSource.from_os().add_gaussian_to(np.zeros((4, 4), dtype=np.int32)[:, ::2], scale=1.0)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 3.0])
def test_laplace_draws_fit_the_law_and_not_one_three_percent_off(epsilon: float) -> None:
    values = np.zeros(1_000_000, dtype=np.int32)
    NoiseSource.for_simulation(0).add_laplace_to(values, epsilon=epsilon)
    cells = np.arange(-int(3 / epsilon) - 1, int(3 / epsilon) + 2)
    observed = np.array([(values == k).sum() for k in cells])

    def p_value(rate: float) -> float:
        pmf = np.tanh(rate / 2) * np.exp(-rate * np.abs(cells))
        counts = np.append(observed, len(values) - observed.sum())
        expected = np.append(pmf, 1 - pmf.sum()) * len(values)
        return float(stats.chisquare(counts, expected).pvalue)

    assert p_value(epsilon) > 0.001
    assert p_value(0.97 * epsilon) < 1e-6
    assert p_value(1.03 * epsilon) < 1e-6


def test_a_key_of_a_release_repeats_its_noise_and_is_private() -> None:
    key = bytes(range(32))
    one, same = (NoiseSource.for_release(key) for _ in range(2))
    other = NoiseSource.for_release(bytes(32))
    assert one.is_private
    assert one.key_for("responses") is None
    first, second = one.words(5).tolist(), one.words(5).tolist()
    assert [same.words(5).tolist(), same.words(5).tolist()] == [first, second]
    assert len({*first, *second, *other.words(5).tolist()}) == 15


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_a_key_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match=f"expected a key of 32 bytes, got {length}"):
        NoiseSource.for_release(bytes(length))


def test_a_fork_does_not_repeat_noise() -> None:
    source = NoiseSource.from_os()
    child = os.fork()
    if child == 0:
        try:
            source.add_gaussian_to(np.zeros(4, dtype=np.int32), scale=5.0)
            os._exit(1)
        except InputError:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_never_share_bits() -> None:
    source = NoiseSource.for_simulation(0)

    def draw(_: int) -> bytes:
        values = np.zeros(64, dtype=np.int32)
        source.add_gaussian_to(values, scale=1000.0)
        return values.tobytes()

    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(draw, range(20_000)))
    assert len(set(results)) == len(results)
