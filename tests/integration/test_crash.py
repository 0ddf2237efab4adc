"""Either side killed at any moment: the same weights in the end, nothing spent or drawn twice."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.fixtures.processes import Parties


@pytest.mark.parametrize(
    ("seed", "kills"),
    [(0, 4), *(pytest.param(seed, 50, marks=pytest.mark.nightly) for seed in range(1, 9))],
)
def test_killed_at_any_moment(
    two_parties: "Callable[[str], Parties]", seed: int, kills: int
) -> None:
    epochs = 6 * kills
    settings = f"hops = 2\n[run]\nepochs = {epochs}\npatience = {epochs}\nbatch_size = 8"
    parties = two_parties(settings)
    parties.disturb(parties.start, random.Random(seed), kills=kills, longest=1.2)
    assert parties.kills >= kills
    parties.check(releases=3)  # the probe and two hops
