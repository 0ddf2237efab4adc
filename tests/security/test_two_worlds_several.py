"""Several data parties, a label party with a graph of its own, and Ray: the same in both worlds."""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.two_worlds import (
    RING,
    WORLDS,
    RecordingChannel,
    Stopped,
    World,
    both_worlds,
    expect_equal,
    force_releases,
    write_graph,
)

from vesper.deployment import data_peers
from vesper.deployment.config.multi_party_config import load_multi_party_config
from vesper.deployment.config.party_config import PartyConfig, load_party_config
from vesper.deployment.data_process import run_data_party
from vesper.deployment.label_process import run_label_party_with_peers
from vesper.mechanism import door
from vesper.session.contract import approve
from vesper.transport.channel import Channel
from vesper.transport.memory import MemoryRendezvous

PLACES = ("platform", "telecom", "own graph")
"""Whose graph has an edge more in one of the worlds."""


@pytest.fixture(autouse=True)
def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same values are released in both worlds."""
    force_releases(monkeypatch)


class SeveralParties:
    """A bank with a graph of its own, a platform and a telecom, in one world."""

    def __init__(self, world: World, *, place: str, edges: list[tuple[int, int]]) -> None:
        self.world, root = world, world.root
        for name, folder in (("platform", "data"), ("telecom", "telecom"), ("own graph", "own")):
            write_graph(root / folder, edges if name == place else RING)
            for file in root.glob("ledger.sqlite*"):
                shutil.copy(file, root / file.name.replace("ledger", folder))
        shared = (root / "data.toml").read_text()
        platform = shared.replace('ledger = "ledger.sqlite"', 'ledger = "data.sqlite"')
        (root / "data.toml").write_text(platform)
        telecom = shared.replace('name = "platform"', 'name = "telecom"')
        for key in ("folder", "state", "ledger"):
            old = {"folder": "data", "state": "data-state", "ledger": "ledger.sqlite"}[key]
            telecom = telecom.replace(
                f'{key} = "{old}"',
                f'{key} = "{old.replace("data", "telecom").replace("ledger", "telecom")}"',
            )
        (root / "telecom.toml").write_text(telecom)
        lines = (root / "label.toml").read_text().splitlines()
        label = "\n".join(line for line in lines if not line.startswith(("peer", "connect")))
        tables = "".join(
            f'\n[[data_party]]\nname = "{name}"\nconnect = "127.0.0.1:1"\n'
            for name in ("platform", "telecom")
        )
        own = '\n[[data_party]]\nname = "transfers"\nown = true\nfolder = "own"\n'
        own += 'graph = "payments-2026-11"\nledger = "own.sqlite"\n'
        (root / "label.toml").write_text(label + tables + own)
        self.table = load_multi_party_config(root / "label.toml")
        for config in (*self.table.all_configs, self.config("data"), self.config("telecom")):
            approve(config.party.state, config.shared)

    def config(self, name: str) -> PartyConfig:
        """Settings of a data party."""
        return load_party_config(self.world.root / f"{name}.toml")

    def run(self, monkeypatch: pytest.MonkeyPatch, *, resume: bool = False) -> None:
        """Run all parties until they end."""
        meetings = {name: MemoryRendezvous(patience=20) for name in ("platform", "telecom")}
        seen = self.world.seen

        @contextmanager
        def connector(
            config: PartyConfig, **rest: Any
        ) -> Iterator[Callable[[float | None], Channel]]:
            is_data = config.party.role == "data"
            name = config.party.name if is_data else config.party.peer
            end = f"{name} {'sends' if is_data else 'receives'}"
            seen.connections.append(end)

            def connect(limit: float | None) -> Channel:
                channel = meetings[name].connect(0 if is_data else 1, limit)
                return RecordingChannel(channel, seen.frames.setdefault(end, []))

            yield connect

        def data(name: str) -> Any:
            config = self.config(name)
            try:
                return run_data_party(config, resume=resume, connector=connector)
            finally:
                meetings[config.party.name].close()

        def label() -> Any:
            try:
                return run_label_party_with_peers(self.table, resume=resume)
            finally:
                for meeting in meetings.values():
                    meeting.close()

        with monkeypatch.context() as patch, ThreadPoolExecutor(3) as pool:
            patch.setattr(data_peers, "peer_connector", connector)
            ends = {name: pool.submit(data, name) for name in ("data", "telecom")}
            ends["label"] = pool.submit(label)
            for name, end in ends.items():
                error = end.exception()
                text = "finished" if error is None else f"{type(error).__name__}: {error}"
                seen.outcomes.append(f"{name} {text}".replace(str(self.world.root), "ROOT"))


def several(root: Path, place: str) -> list[SeveralParties]:
    """Make both worlds with several parties."""
    worlds = both_worlds(root)
    return [
        SeveralParties(world, place=place, edges=edges)
        for world, edges in zip(worlds, WORLDS.values(), strict=True)
    ]


@pytest.mark.parametrize("place", PLACES)
def test_several_parties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    parties = several(tmp_path, place)
    for each in parties:
        each.run(monkeypatch)
        assert each.world.seen.outcomes == ["data finished", "telecom finished", "label finished"]
    expect_equal([each.world for each in parties])


@pytest.mark.parametrize("place", PLACES)
def test_several_parties_that_are_killed_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The second release of any party ends all of them; which of them draws it is up to threads."""
    parties = several(tmp_path, place)
    for each in parties:
        with monkeypatch.context() as patch:
            inner = vars(door)["release"]  # that of the fixture

            def killed(*given: Any, inner: Any = inner, **named: Any) -> Any:
                if named["event"].noise_std < 3.0:
                    raise Stopped("killed")
                return inner(*given, **named)

            patch.setattr(door, "release", killed)
            each.run(monkeypatch)
        each.run(monkeypatch, resume=True)
        assert each.world.seen.outcomes[3:] == [
            "data finished",
            "telecom finished",
            "label finished",
        ]
    one, other = (each.world.seen for each in parties)
    assert one.outcomes[3:] == other.outcomes[3:]
    for end in one.frames:  # the last time: how many frames came before the kill is up to threads
        assert one.frames[end][-8:] == other.frames[end][-8:]


def test_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("ray") is None:
        pytest.skip("needs the package ray: pip install 'vesper[ray]'")
    worlds = both_worlds(tmp_path)
    for world in worlds:
        world.change("data", 'when_lost = "stop"', 'when_lost = "stop"\nengine = "ray"')
        world.run(monkeypatch)
        assert world.seen.outcomes == ["data finished", "label finished"]
        world.note_entries()
    expect_equal(worlds)
