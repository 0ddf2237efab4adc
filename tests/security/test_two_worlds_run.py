"""A party run and its resumption after kills look the same in both worlds."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.two_worlds import (
    WORLDS,
    Stopped,
    both_worlds,
    expect_equal,
    force_releases,
    write_graph,
)

from vesper.deployment import data_process
from vesper.mechanism import door
from vesper.mechanism.release_store import ReleaseStore
from vesper.privacy.ledger.account import Account
from vesper.session.observer import SessionObserver
from vesper.transport.durable_channel import DurableChannel

KILLS: dict[str, tuple[Any, str, int]] = {
    "before the reservation": (data_process, "reserve_for_party", 1),
    "reserved, before contact": (data_process, "describe_overlaps", 1),
    "before the first charge": (Account, "charge_once", 1),
    "charged, not drawn": (door, "release", 1),
    "drawn, not stored": (ReleaseStore, "put", 1),
    "stored, not recorded": (Account, "mark_stored", 2),
    "before a frame is sent": (DurableChannel, "send", 4),
    "in the middle of training": (DurableChannel, "send", 12),
    "before the result": (data_process, "write_run", 1),
    "before the rest is returned": (data_process, "return_unused", 1),
}
"""Function at whose n-th call the data party is killed, by instant."""


@pytest.fixture(autouse=True)
def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same values are released in both worlds."""
    force_releases(monkeypatch)


def kill_at(monkeypatch: pytest.MonkeyPatch, place: Any, name: str, call: int) -> None:
    """Let the n-th call of a function by the data party end it as kill -9 would."""
    inner: Callable[..., Any] = getattr(place, name)
    calls = []

    def killed(*given: Any, **named: Any) -> Any:
        sender = given[0] if given else None
        if isinstance(sender, DurableChannel) and sender._directions[0] != "data>label":
            return inner(*given, **named)
        calls.append(name)
        if len(calls) == call:
            raise Stopped(name)
        return inner(*given, **named)

    monkeypatch.setattr(place, name, killed)


METHODS = {
    "certified": "",
    "edgerand": 'method = "edgerand"\n',
    "lapgraph": 'method = "lapgraph"\n',
    "gap": 'method = "gap"\n',
    "mlp, which reads no edge": 'method = "mlp"\n',
}


@pytest.mark.parametrize("method", METHODS)
def test_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    worlds = both_worlds(tmp_path, run=METHODS[method])
    for world in worlds:
        world.run(monkeypatch)
        world.note_entries()
    assert worlds[0].seen.outcomes == ["data finished", "label finished"]
    expect_equal(worlds)


@pytest.mark.parametrize("instant", KILLS)
def test_a_run_that_is_killed_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instant: str
) -> None:
    worlds = both_worlds(tmp_path)
    for world in worlds:
        with monkeypatch.context() as patch:
            kill_at(patch, *KILLS[instant])
            world.run(monkeypatch)
        assert world.seen.outcomes[0].startswith("data Stopped")
        if (world.root / "data-state" / "result").exists():
            continue  # finished: there is nothing to resume
        world.run(monkeypatch)
        assert world.seen.outcomes[2:] == ["data finished", "label finished"]
        world.note_entries()
    expect_equal(worlds)


@pytest.mark.parametrize("instant", ["charged, not drawn", "in the middle of training"])
def test_edges_that_change_between_kill_and_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instant: str
) -> None:
    """In one world they become equal to those of the older graph, in the other they cease to be."""
    worlds = both_worlds(tmp_path)
    for world, edges in zip(worlds, reversed(list(WORLDS.values())), strict=True):
        with monkeypatch.context() as patch:
            kill_at(patch, *KILLS[instant])
            world.run(monkeypatch)
        write_graph(world.root / "data", edges)
        world.run(monkeypatch)
        assert world.seen.outcomes[2:] == ["data finished", "label finished"]
        world.note_entries()
    expect_equal(worlds)


def test_a_run_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is refused is not seen by its peer, in either world."""
    worlds = both_worlds(tmp_path, privacy="epsilon = 0.2\nhops = 2\n")
    for world in worlds:
        world.run(monkeypatch)
        assert world.seen.outcomes[0].startswith("data BudgetError")
        assert world.seen.connections == ["label is there"]
        assert world.seen.frames == {}
        world.note_entries()
    expect_equal(worlds)


def test_a_graph_that_breaks_the_promised_degree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it keeps it depends on its edges, so nobody is contacted before it is checked."""
    world = both_worlds(
        tmp_path, privacy='epsilon = 8.0\nhops = 2\nprivacy_unit = "node"\nmax_degree = 1\n'
    )[0]
    world.run(monkeypatch)
    assert world.seen.outcomes[0].startswith("data InputError")
    assert "degree" in world.seen.outcomes[0]
    assert world.seen.connections == ["label is there"]
    assert world.seen.frames == {}


class BrokenTerminal(SessionObserver):
    """A terminal that cannot show what is in one of the worlds only."""

    def warning(self, text: str) -> None:
        """Fail, as a closed pipe or an unprintable name does."""
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("name", ["today's name", "a new name"])
def test_warnings_that_cannot_be_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Only in one of the worlds there is something to show."""
    worlds = both_worlds(tmp_path)
    for world in worlds:
        if name == "a new name":
            world.change("data", "payments-2026-11", "payments-2027-01")
        world.observer = BrokenTerminal()
        world.run(monkeypatch)
        assert world.seen.outcomes == ["data finished", "label finished"]
        world.note_entries()
    expect_equal(worlds)
