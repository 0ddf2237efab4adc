import mpmath
import pytest

from vesper.errors import InputError
from vesper.mechanism.rounded_gaussian import thresholds


@pytest.mark.parametrize("scale", [0.25, 1.0, 6.4, 29.0, 64.0, 660.48])
def test_thresholds_are_good_to_120_bits(scale: float) -> None:
    table = thresholds(scale)
    with mpmath.workprec(400):
        for at in range(0, len(table.high), max(1, len(table.high) // 60)):
            held = mpmath.mpf((int(table.high[at]) << 64) + int(table.low[at])) / 2**128
            exact = mpmath.ncdf((at - table.offset + mpmath.mpf(1) / 2) / mpmath.mpf(scale))
            assert abs(held - exact) < mpmath.mpf(2) ** -120


def test_the_tail_that_is_not_drawn_is_negligible() -> None:
    table = thresholds(64.0)
    with mpmath.workprec(400):
        assert mpmath.ncdf(-(table.offset + mpmath.mpf(1) / 2) / 64) < mpmath.mpf(2) ** -140


def test_thresholds_ascend_and_are_symmetric() -> None:
    table = thresholds(10.0)
    values = [(int(h) << 64) + int(low) for h, low in zip(table.high, table.low, strict=True)]
    assert values == sorted(values)
    assert all(abs(a + b - 2**128) <= 2 for a, b in zip(values, reversed(values), strict=True))


@pytest.mark.parametrize("scale", [0.0, -1.0, 0.1, float("nan"), float("inf"), 2.0**21])
def test_scales_out_of_range_are_refused(scale: float) -> None:
    with pytest.raises(InputError):
        thresholds(scale)
