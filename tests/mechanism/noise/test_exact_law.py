"""Tables against arithmetic of 700 bits, and draws that the table cannot decide."""

from fractions import Fraction
from functools import partial

import mpmath
import pytest

from vesper.errors import InputError, VesperError
from vesper.mechanism.noise import exact_law as law_module
from vesper.mechanism.noise import rounded_gaussian
from vesper.mechanism.noise.discrete_laplace import DiscreteLaplace
from vesper.mechanism.noise.exact_law import Law, decide, exp_minus, threshold_table
from vesper.mechanism.noise.rounded_gaussian import RoundedGaussian

PRECISE = 700


def exact_cdf(law: Law, k: int) -> mpmath.mpf:
    """P(K <= k) by mpmath."""
    if isinstance(law, RoundedGaussian):
        return mpmath.ncdf((k + mpmath.mpf(1) / 2) / mpmath.mpf(law.scale))
    assert isinstance(law, DiscreteLaplace)
    ratio = mpmath.exp(-mpmath.mpf(law.epsilon))
    below = ratio ** (-k) / (1 + ratio)  # P(K <= k) for k < 0
    return below if k < 0 else 1 - ratio ** (k + 1) / (1 + ratio)


LAWS: list[Law] = [
    *(RoundedGaussian(scale) for scale in (0.25, 1.0, 6.4, 29.0, 64.0, 660.48, 5003.7)),
    *(DiscreteLaplace(epsilon) for epsilon in (0.01, 0.5, 3.0, 100.0)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_thresholds_are_exact_up_to_the_last_bit(law: Law) -> None:
    table = threshold_table(law)
    with mpmath.workprec(PRECISE):
        for at in range(0, len(table.high), max(1, len(table.high) // 60)):
            threshold = (int(table.high[at]) << 64) + int(table.low[at])
            exact = exact_cdf(law, at - table.offset) * 2**128
            assert threshold - 1 < exact < threshold + 2


def test_thresholds_of_large_noise() -> None:
    law = RoundedGaussian(65_536.0)
    table = threshold_table(law)
    with mpmath.workprec(PRECISE):
        for at in range(table.offset % 13, len(table.high), 60_007):
            threshold = (int(table.high[at]) << 64) + int(table.low[at])
            assert threshold - 1 < exact_cdf(law, at - table.offset) * 2**128 < threshold + 2


@pytest.mark.parametrize(("scale", "bits"), [(1300.0, 128), (2600.5, 192)])
def test_blocks_extend_the_series_without_visible_error(
    scale: float, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = RoundedGaussian(scale)
    good = law.probabilities(bits)
    degree = rounded_gaussian._degree_for(rounded_gaussian.CELLS_PER_BLOCK / scale, bits + 32)
    assert degree <= rounded_gaussian.MAX_POLYNOMIAL_DEGREE
    with monkeypatch.context() as patch:
        patch.setattr(rounded_gaussian, "_degree_for", lambda *_: degree // 2)
        poor = law.probabilities(bits)
    monkeypatch.setattr(rounded_gaussian, "MAX_POLYNOMIAL_DEGREE", 0)  # no blocks
    cells = law.probabilities(bits)

    def largest_error(pmf: list[int]) -> Fraction:
        """Largest error in units of 2^-(bits + 32) of the largest cell."""
        pairs = zip(pmf, cells, strict=True)
        largest = max(abs(Fraction(a, pmf[0]) - Fraction(b, cells[0])) for a, b in pairs)
        return largest * (1 << bits + 32)

    assert largest_error(good) < 1.1
    assert largest_error(poor) > 1.1


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_thresholds_of_more_bits_are_exact_too(law: Law) -> None:
    bits = 256
    pmf = law.probabilities(bits)
    thresholds = law_module._cumulative(pmf, bits)
    with mpmath.workprec(PRECISE):
        for at in range(0, len(thresholds) - 1, max(1, len(thresholds) // 20)):
            exact = exact_cdf(law, at - len(pmf) + 1) * mpmath.mpf(2) ** bits
            assert thresholds[at] - 1 < exact < thresholds[at] + 2


@pytest.mark.parametrize("law", [RoundedGaussian(5.0), DiscreteLaplace(0.5)], ids=str)
def test_ties_after_64_and_128_bits_are_decided(law: Law) -> None:
    with mpmath.workprec(PRECISE):
        for k in (-3, 0, 2):
            threshold = int(mpmath.floor(exact_cdf(law, k) * mpmath.mpf(2) ** 256))
            words = [threshold >> shift & (2**64 - 1) for shift in (192, 128, 64, 0)]
            for last, expected in ((words[3] - 5, k), (words[3] + 5, k + 1)):
                stream = [*words[1:3], last]
                assert decide(law, words[0], partial(stream.pop, 0)) == expected
                assert stream == [], "fewer bits than needed were drawn"


def test_draws_beyond_the_table_are_possible() -> None:
    law = DiscreteLaplace(3.0)
    offset = threshold_table(law).offset
    stream = [2**64 - 1, 2**64 - 1, 2**64 - 1, 0]
    assert decide(law, 2**64 - 1, lambda: stream.pop(0)) > offset


def test_a_threshold_on_a_word_boundary_is_refused() -> None:
    class OnTheBoundary:
        def probabilities(self, bits: int) -> list[int]:
            return [2, 1]  # P(K <= -1) = 1/4: all later bits are zero

    with pytest.raises(VesperError, match="on a word boundary"):
        threshold_table(OnTheBoundary())


@pytest.mark.parametrize("tail", [2**64 - 1, 2**64 - 2, 2**64, 2**64 + 1])
def test_the_first_and_the_last_word_have_one_boundary(tail: int) -> None:
    class NearTheFirstBoundary:
        def probabilities(self, bits: int) -> list[int]:
            return [2**128 - 2 * tail, tail]  # P(K <= -1) = tail / 2^128, P(K <= 0) = 1 - that

    with pytest.raises(VesperError, match="on a word boundary"):
        threshold_table(NearTheFirstBoundary())


@pytest.mark.parametrize("tail", [0, 1, 2**64 - 5, 2**64 + 5])
def test_the_ends_of_the_scale_are_not_boundaries(tail: int) -> None:
    class Inside:
        def probabilities(self, bits: int) -> list[int]:
            return [2**128 - 2 * tail, tail]

    table = threshold_table(Inside())
    assert table.high.tolist() == [tail >> 64, 2**64 - 1 - (tail >> 64)]


@pytest.mark.parametrize("x", [0, 1, 7, 100, 320])
def test_exp_minus(x: int) -> None:
    with mpmath.workprec(PRECISE):
        exact = mpmath.exp(-mpmath.mpf(x) / 4) * mpmath.mpf(2) ** 300
        assert abs(exp_minus((x << 300) // 4, 300) - exact) < 2


@pytest.mark.parametrize("scale", [0.0, -1.0, 0.1, float("nan"), float("inf"), 2.0**21])
def test_scales_out_of_range_are_refused(scale: float) -> None:
    with pytest.raises(InputError):
        RoundedGaussian(scale)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf"), 1e-9])
def test_epsilons_out_of_range_are_refused(epsilon: float) -> None:
    with pytest.raises(InputError):
        DiscreteLaplace(epsilon)
