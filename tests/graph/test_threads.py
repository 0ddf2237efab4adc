"""Who asks Numba for fewer threads gets fewer."""

import numba
import pytest

from vesper.graph.threads import threads_allowed


def test_who_asks_numba_for_fewer_gets_fewer() -> None:
    most = numba.get_num_threads()
    if most < 2:
        pytest.skip("needs two cores")
    numba.set_num_threads(1)
    try:
        assert threads_allowed() == 1
    finally:
        numba.set_num_threads(most)
    assert threads_allowed() == most
