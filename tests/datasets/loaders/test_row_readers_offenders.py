"""All offenders are counted, and three are named."""

import pytest

from vesper.datasets.loaders.row_readers import Offenders
from vesper.errors import InputError


def test_no_offenders_raise_no_error() -> None:
    odd = Offenders("nodes.csv, column x", "numbers", "fix them")
    odd.add([], count=0)
    odd.refuse()


def test_all_offenders_are_counted_and_the_first_three_named() -> None:
    odd = Offenders("nodes.csv, column x", "numbers", "fix them")
    odd.add(["a", "b"], count=2)
    odd.add(["c", "d"], count=2)
    odd.add(iter(["e"]), count=1)
    with pytest.raises(InputError) as caught:
        odd.refuse()
    assert str(caught.value) == (
        "nodes.csv, column x: expected numbers, found 5 others (first 3: a, b, c); fix them"
    )
