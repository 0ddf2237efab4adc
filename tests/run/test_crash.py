"""Kill either side at any moment: the same weights in the end, nothing spent or drawn twice."""

import random
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from tests.run.conftest import Parties

Role = Literal["data", "label"]
LIMIT = 300.0
"""Seconds after which a run that does not end has hung."""


def disturbed(parties: "Parties", chance: random.Random, *, kills: int, longest: float) -> None:
    """Kill and start again until both have finished; after so many kills, leave them alone."""
    running: dict[Role, bool] = {"data": True, "label": True}
    for role in running:
        parties.start(role)
    deadline = time.monotonic() + LIMIT + kills * (longest + 2)
    next_kill = time.monotonic() + chance.uniform(0, longest)
    while any(running.values()):
        assert time.monotonic() < deadline, (parties.log("data"), parties.log("label"))
        time.sleep(0.01)
        for role in [role for role, is_running in running.items() if is_running]:
            code = parties.code(role)
            if code is None:
                continue
            if code == -signal.SIGKILL:
                parties.start(role)
                continue
            assert code == 0, (role, code, parties.log("data"), parties.log("label"))
            running[role] = False
        if parties.kills < kills and time.monotonic() > next_kill:
            alive = [role for role, is_running in running.items() if is_running]
            if alive and chance.random() < 0.85:
                parties.kill(chance.choice(alive))
            else:
                for role in alive:
                    parties.kill(role)
            next_kill = time.monotonic() + chance.uniform(0, longest)


@pytest.mark.parametrize(
    ("seed", "kills"),
    [(0, 6), *(pytest.param(seed, 50, marks=pytest.mark.nightly) for seed in range(1, 9))],
)
def test_killed_at_any_moment(
    two_parties: "Callable[[str], Parties]", seed: int, kills: int
) -> None:
    epochs = 6 * kills
    settings = f"hops = 2\n[run]\nepochs = {epochs}\npatience = {epochs}\nbatch_size = 8"
    parties = two_parties(settings)
    disturbed(parties, random.Random(seed), kills=kills, longest=1.2)
    assert parties.kills >= kills
    parties.check(releases=3)  # the poll and two hops
