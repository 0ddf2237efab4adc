from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import InputError
from vesper.privacy.accounting.pure import mu_of_pure
from vesper.privacy.events import ClippedRelease, GaussianRelease, PureRelease
from vesper.privacy.ledger.receipt import add_cost, count, encode, largest


@pytest.mark.parametrize("noise_std", [0.0, -1.0, float("inf"), float("nan")])
def test_a_release_without_noise_does_not_exist(noise_std: float) -> None:
    with pytest.raises(InputError, match="noise_std"):
        GaussianRelease(noise_std=noise_std)
    with pytest.raises(InputError, match="noise_std"):
        ClippedRelease(noise_std=noise_std, row_norm=2.0)
    with pytest.raises(InputError, match="epsilon"):
        PureRelease(epsilon=noise_std, what="counts")


@given(st.floats(0.01, 1e3), st.floats(0.01, 10))
def test_costs_are_rounded_up(noise_std: float, shift: float) -> None:
    exact = Fraction(shift) ** 2 / Fraction(noise_std) ** 2
    cost = Fraction(GaussianRelease(noise_std=noise_std, endpoint_shift=shift).cost)
    assert exact <= cost < exact * (1 + Fraction(2) ** -51)
    clipped = Fraction(ClippedRelease(noise_std=noise_std, row_norm=3.0).cost)
    assert 1 / Fraction(noise_std) ** 2 <= clipped


def test_no_cost_is_lost_to_underflow_or_overflow() -> None:
    assert GaussianRelease(noise_std=1.0, endpoint_shift=1e-300).cost > 0
    assert GaussianRelease(noise_std=1.0, endpoint_shift=1e300).cost == float("inf")
    assert PureRelease(epsilon=1e-300, what="counts").cost > 0


def test_invalid_row_norms_are_refused() -> None:
    for row_norm in (0.5, float("inf"), float("nan")):
        with pytest.raises(InputError, match="row_norm"):
            ClippedRelease(noise_std=1.0, row_norm=row_norm)


@given(st.integers(1, 2000), st.data())
def test_receivers_round_trip(num_nodes: int, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, num_nodes - 1), unique=True, max_size=50))
    spent = np.zeros(num_nodes, dtype=np.int64)
    add_cost(encode(np.array(chosen, dtype=np.int64), num_nodes), 3, spent)
    assert np.flatnonzero(spent).tolist() == sorted(chosen)
    assert set(spent.tolist()) <= {0, 3}
    spent += np.arange(num_nodes)
    blob = encode(np.array(chosen, dtype=np.int64), num_nodes)
    assert largest(blob, spent) == max((int(spent[v]) for v in chosen), default=0)
    assert count(blob) == len(chosen)


@pytest.mark.parametrize("blob", [b"", b"A", b"X" + bytes(8), b"L" + bytes(8) + b"1", b"B" * 9])
def test_invalid_receiver_sets_are_refused(blob: bytes) -> None:
    with pytest.raises(InputError, match="receiver"):
        add_cost(blob, 1, np.zeros(0 if blob[1:] == bytes(8) else 4, dtype=np.int64))


def test_receivers_that_repeat_or_do_not_exist_are_refused() -> None:
    with pytest.raises(InputError, match="once"):
        encode(np.array([1, 1]), 4)
    with pytest.raises(InputError, match="between 0 and 3"):
        encode(np.array([4]), 4)
    assert encode(np.arange(4), 4) == encode(None, 4)


def test_pure_releases_pay_their_mu_at_two_endpoints() -> None:
    event = PureRelease(epsilon=0.1, what="degree histogram")
    mu = mu_of_pure(epsilon=0.1)
    assert mu**2 <= 2 * event.cost <= mu**2 * (1 + 1e-9)
