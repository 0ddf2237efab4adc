"""Offenders are counted in full and named by three."""

import pytest

from vesper.datasets.loaders.row_readers import Offenders
from vesper.errors import InputError


def test_no_offender_no_error() -> None:
    odd = Offenders("nodes.csv, column x", "numbers", "mend them")
    odd.add([], count=0)
    odd.refuse()


def test_the_count_is_of_the_whole_stream_and_the_names_are_the_first_three() -> None:
    odd = Offenders("nodes.csv, column x", "numbers", "mend them")
    odd.add(["a", "b"], count=2)
    odd.add(["c", "d"], count=2)
    odd.add(iter(["e"]), count=1)
    with pytest.raises(InputError) as caught:
        odd.refuse()
    assert str(caught.value) == (
        "nodes.csv, column x: expected numbers, found 5 others (first 3: a, b, c); mend them"
    )
