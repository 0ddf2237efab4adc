"""Answers to queries, with and without a snapshot, look the same in both worlds."""

import json
import queue
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fixtures.two_worlds import (
    IDS,
    WORLDS,
    RecordingChannel,
    World,
    both_worlds,
    expect_equal,
    force_releases,
    write_graph,
)

from vesper.deployment.saved_run import read_saved_label_run
from vesper.errors import BudgetError, PeerError
from vesper.mechanism.noise import NoiseSource
from vesper.protocol.inference_turns import QUERY_TABLE
from vesper.protocol.turns import Role
from vesper.serving import snapshots
from vesper.serving.embedding_cache import EmbeddingCache
from vesper.serving.embedding_client import EmbeddingClient
from vesper.serving.embedding_server import open_embedding_server, serve_peer
from vesper.serving.http.service import Service
from vesper.serving.predictor import PeerPredictor
from vesper.session.peer import Link
from vesper.transport.channel import Channel
from vesper.transport.memory import memory_pair

LATER = "payments-2026-12"
LAST_STAGE = 2
"""Needs all releases, whichever stage validation has chosen."""


class _Names:
    """Stands for `secrets`: names of snapshots count up in each world, instead of being random."""

    number = 0

    @classmethod
    def token_hex(cls, size: int) -> str:
        """Return the next name."""
        cls.number += 1
        return f"{cls.number:0{2 * size}x}"


def in_turn(worlds: list[World]) -> Iterator[World]:
    """Yield each world, with the names of its snapshots starting anew."""
    for world in worlds:
        _Names.number = 0
        yield world
        world.note_entries()


@pytest.fixture
def worlds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[World]:
    """Both worlds after training, with their snapshots in `later`."""
    force_releases(monkeypatch)
    monkeypatch.setattr(snapshots, "secrets", _Names)
    made = both_worlds(tmp_path)
    for world, edges in zip(made, WORLDS.values(), strict=True):
        world.run(monkeypatch)
        write_graph(world.root / "later", edges)
    return made


@contextmanager
def serve(
    world: World, *, snapshot: Path | None = None
) -> Iterator[Callable[[float | None], Channel]]:
    """Serve a graph until the block ends; yield what connects a client to it."""
    graph = None if snapshot is None else LATER
    arrivals: queue.SimpleQueue[Channel | None] = queue.SimpleQueue()
    is_open: Future[bool] = Future()

    def work() -> None:
        try:
            with open_embedding_server(
                world.config("data"), snapshot=snapshot, graph=graph, noise=NoiseSource.from_os()
            ) as server:
                is_open.set_result(True)
                while (channel := arrivals.get()) is not None:
                    with suppress(PeerError):
                        serve_peer(server, Link(Role.DATA, channel, QUERY_TABLE))
                    channel.close()
        except BaseException as error:
            if is_open.done():
                raise
            is_open.set_exception(error)

    def connect(limit: float | None) -> Channel:
        ours, theirs = memory_pair(patience=20)
        arrivals.put(RecordingChannel(theirs, world.seen.frames.setdefault("answers", [])))
        return RecordingChannel(ours, world.seen.frames.setdefault("queries", []))

    with ThreadPoolExecutor(max_workers=1) as pool:
        working = pool.submit(work)
        is_open.result()
        try:
            yield connect
        finally:
            arrivals.put(None)
        working.result()


def ask(world: World, connect: Callable[[float | None], Channel]) -> None:
    """Query all nodes, over HTTP as well, and note the answers."""
    run, state = read_saved_label_run(world.config("label")), world.config("label").party.state
    run = replace(run, stage=LAST_STAGE)
    client, cache = EmbeddingClient(connect, run, peer="platform"), EmbeddingCache(state / "cache")
    predictor = PeerPredictor(run, client, cache, peer="platform")
    failures: list[Exception] = []
    service = Service(predictor, peer="platform", failed=failures.append)
    body = json.dumps({"ids": [*IDS[:40], "nobody"]}).encode()
    for method, path, content in (
        ("GET", "/budget", b""),
        ("POST", "/predict", body),
        ("POST", "/predict", body),
        ("GET", "/budget", b""),
        ("GET", "/health", b""),
    ):
        response = service.respond(method, path, "application/json", content)
        world.seen.outcomes.append(f"{path} {response.status} {response.content!r}")
    assert not failures
    client.close()
    cache.close()


def test_the_graph_of_training(worlds: list[World]) -> None:
    for world in in_turn(worlds):
        with serve(world) as connect:
            ask(world, connect)
    expect_equal(worlds)


def test_the_graph_of_training_after_its_edges_have_changed(worlds: list[World]) -> None:
    for world, edges in zip(in_turn(worlds), reversed(list(WORLDS.values())), strict=True):
        write_graph(world.root / "data", edges)
        with serve(world) as connect:
            ask(world, connect)
    expect_equal(worlds)


def test_a_snapshot(worlds: list[World]) -> None:
    """Its edges are those of a graph that was counted, released, and used unprotected."""
    for world in in_turn(worlds):
        with serve(world, snapshot=world.root / "later") as connect:
            ask(world, connect)
    expect_equal(worlds)


def test_a_snapshot_that_is_rewritten_in_place(worlds: list[World]) -> None:
    for world, edges in zip(in_turn(worlds), reversed(list(WORLDS.values())), strict=True):
        for _ in range(2):
            with serve(world, snapshot=world.root / "later") as connect:
                ask(world, connect)
            write_graph(world.root / "later", edges)
    expect_equal(worlds)


def test_a_server_that_is_killed(worlds: list[World]) -> None:
    """Its reservation stays open, whatever the edges are when it starts again."""
    for world, edges in zip(in_turn(worlds), reversed(list(WORLDS.values())), strict=True):
        killed = open_embedding_server(
            world.config("data"), snapshot=world.root / "later", graph=LATER
        )
        killed.__enter__()
        write_graph(world.root / "later", edges)
        with serve(world, snapshot=world.root / "later") as connect:
            ask(world, connect)
    expect_equal(worlds)


def test_a_snapshot_whose_budget_is_spent(worlds: list[World]) -> None:
    """It is refused to its owner, before anybody can connect."""
    for world in in_turn(worlds):
        other = write_graph(world.root / "another", [(0, 1)])
        with serve(world, snapshot=other) as connect:
            ask(world, connect)
        with pytest.raises(BudgetError), serve(world, snapshot=world.root / "later"):
            pytest.fail("somebody could connect")
    expect_equal(worlds)
