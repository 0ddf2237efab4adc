"""Probe and other releases together use up the budget, and no more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.privacy.events import LARGEST_NOISE
from vesper.privacy.planning.probe_share import probe_noise_from_rest, split_probe_noise


@given(
    whole=st.floats(1e-2, LARGEST_NOISE * 0.999),
    share=st.floats(1e-6, 0.9),
)
def test_probe_and_rest_together_cost_the_whole(whole: float, share: float) -> None:
    small, rest = split_probe_noise(whole, share=share)
    assert small is not None
    assert small <= LARGEST_NOISE
    assert 1 / small**2 + 1 / rest**2 == pytest.approx(1 / whole**2, rel=1e-9)
    assert (whole / small) ** 2 >= share * (1 - 1e-9)  # more if the noise is capped


@given(whole=st.floats(1e-2, LARGEST_NOISE / 20), share=st.floats(0.01, 0.5))
def test_probe_noise_from_rest_inverts_the_split(whole: float, share: float) -> None:
    small, rest = split_probe_noise(whole, share=share)
    assert probe_noise_from_rest(rest, share=share) == pytest.approx(small, rel=1e-9)


def test_without_a_probe() -> None:
    assert split_probe_noise(3.0, share=0.0) == (None, 3.0)
    assert split_probe_noise(LARGEST_NOISE, share=0.01) == (None, LARGEST_NOISE)
    assert probe_noise_from_rest(3.0, share=0.0) is None
