import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vesper.protocol.fields import digest_of_ids, digest_of_roots

IDS = st.lists(st.text(max_size=3), max_size=4).map(tuple)


@given(IDS, IDS)
def test_ids_have_equal_digests_only_when_they_are_equal(
    first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    assert (digest_of_ids(first) == digest_of_ids(second)) == (first == second)


def test_digests_depend_on_the_order() -> None:
    assert digest_of_ids(("a", "b")) != digest_of_ids(("b", "a"))
    assert digest_of_ids(("ab",)) != digest_of_ids(("a", "b"))
    assert digest_of_roots(np.array([1, 2])) != digest_of_roots(np.array([2, 1]))
