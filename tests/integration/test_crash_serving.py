"""Servers and clients killed at any moment: answers are charged once and stay the same."""

import json
import random
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.privacy.ledger.store import Ledger
from vesper.protocol.messages import EmbeddingQuery
from vesper.serving.embedding_cache import Embedding, EmbeddingCache
from vesper.serving.embedding_server import open_embedding_server

if TYPE_CHECKING:
    from tests.fixtures.processes import Parties

Role = Literal["data", "label"]
HOPS = 2
IDS = [str(k) for k in range(40)]
LIMIT = 240.0
"""Seconds after which a missing answer counts as lost."""
LONGEST = 1.5
"""Seconds between two kills, at most."""


def train(parties: "Parties") -> None:
    """Train, and choose the last stage for predictions, which needs every release."""
    for role in parties.configs:
        parties.start(role)
    assert (parties.wait("data"), parties.wait("label")) == (0, 0)
    path = parties.configs["label"].party.state / "result" / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chosen_stage": HOPS}))


def write_snapshot(folder: Path, *, seed: int) -> Path:
    folder.mkdir()
    size = len(IDS)
    nodes = {"id": range(size), "age": [float(k % 5) for k in range(size)]}
    pq.write_table(pa.table(nodes), folder / "nodes.parquet")
    edges = {"src": range(size), "dst": np.random.default_rng(seed).permutation(size)}
    pq.write_table(pa.table(edges), folder / "edges.parquet")
    return folder


def names(parties: "Parties") -> set[str]:
    """Names that the data party has for the snapshots it has served."""
    folder = parties.configs["data"].party.state / "snapshots"
    return {path.parent.name for path in folder.glob("*/snapshot.json")}


def name_of(parties: "Parties", snapshot: Path) -> str | None:
    """Name that the data party has for a snapshot; None before it has served it."""
    folder = parties.configs["data"].party.state / "snapshots"
    for name in names(parties):
        facts = json.loads((folder / name / "snapshot.json").read_text())
        if facts["folder"] == str(snapshot.resolve()):
            return name
    return None


def cached_embeddings(parties: "Parties", name: str) -> dict[str, Embedding]:
    """Embeddings of a snapshot that the label party has received."""
    with closing(EmbeddingCache(parties.configs["label"].party.state / "cache")) as cache:
        return cache.find(name, HOPS, IDS)


def charges(parties: "Parties", name: str) -> int:
    path = parties.configs["data"].party.ledger
    with closing(Ledger(path, clock=time.time)) as ledger:
        assert ledger.verify() is None
        entries = [e for e in ledger.entries() if e.run == f"snapshot {name}" and e.cost > 0]
        return len(entries)


def check_so_far(parties: "Parties", snapshot: Path) -> None:
    """Check that nothing was sent that is not charged, and that nothing is charged twice."""
    name = name_of(parties, snapshot)
    if name is not None:
        received = cached_embeddings(parties, name)
        charged = charges(parties, name)
        assert charged <= HOPS
        assert charged == HOPS or not received


def query_over_http(port: int, old: set[str]) -> None:
    """Send queries over HTTP until every id is answered, whoever is away meanwhile.

    While the data party is away, the cache answers for earlier snapshots, whose names are `old`.
    """
    left, deadline = list(IDS), time.monotonic() + LIMIT
    while left:
        assert time.monotonic() < deadline
        body = json.dumps({"ids": left[:5]})
        try:
            with closing(HTTPConnection("127.0.0.1", port, timeout=20)) as client:
                client.request("POST", "/predict", body, {"Content-Type": "application/json"})
                response = client.getresponse()
                content = json.loads(response.read())
        except (OSError, HTTPException):
            time.sleep(0.05)
            continue
        assert response.status in (200, 502, 503), content
        predictions = [each for each in content.get("predictions", []) if "error" not in each]
        answered = {each["id"] for each in predictions if each["snapshot"] not in old}
        left = [text for text in left if text not in answered]


def disturb(
    parties: "Parties",
    snapshot: Path,
    chance: random.Random,
    *,
    command: dict[str, Any],
    kills: int,
    client: "Future[None] | None" = None,
) -> None:
    """Kill and restart until everything is answered; after so many kills, leave them alone.

    `command` starts the label party.
    """
    commands: dict[Role, dict[str, Any]] = {
        "data": {
            "start": "embedding-server",
            "snapshot": str(snapshot),
            "graph": snapshot.name,
        },
        "label": command,
    }
    for role, each in commands.items():
        parties.start_party(role, **each)
    deadline = time.monotonic() + LIMIT
    next_kill, killed = time.monotonic() + chance.uniform(0, LONGEST), 0
    while client is None or not client.done():
        assert time.monotonic() < deadline, (parties.log("data"), parties.log("label"))
        time.sleep(0.01)
        for role, each in commands.items():
            code = parties.code(role)
            if code is None:
                continue
            if code == 0 and role == "label" and client is None:
                return
            expected = (-signal.SIGKILL, 4) if role == "label" else (-signal.SIGKILL,)
            assert code in expected, (role, code, parties.log("data"), parties.log("label"))
            parties.start_party(role, **each)
        if killed < kills and time.monotonic() > next_kill:
            parties.kill(chance.choice(list(commands)))
            check_so_far(parties, snapshot)
            next_kill, killed = time.monotonic() + chance.uniform(0, LONGEST), killed + 1


def stop(parties: "Parties", *roles: Role) -> None:
    """Kill these parties, and wait until they have ended."""
    for role in roles:
        parties.kill(role)
        parties.wait(role)


@pytest.mark.parametrize("client_kind", ["predict", "http-server"])
@pytest.mark.parametrize(
    ("snapshots", "kills"), [(1, 4), pytest.param(25, 8, marks=pytest.mark.nightly)]
)
def test_killed_at_any_moment(
    two_parties: "Callable[[str], Parties]",
    tmp_path: Path,
    client_kind: str,
    snapshots: int,
    kills: int,
) -> None:
    parties = two_parties(f"hops = {HOPS}\n[run]\nepochs = 1\nbatch_size = 20")
    train(parties)
    chance = random.Random(f"{client_kind} {snapshots}")
    for number in range(snapshots):
        snapshot = write_snapshot(tmp_path / f"snapshot-{number}", seed=number)
        with ThreadPoolExecutor(1) as pool:
            if client_kind == "predict":
                command: dict[str, Any] = {"start": "predict", "ids": IDS}
                disturb(parties, snapshot, chance, command=command, kills=kills)
                stop(parties, "data")
            else:
                command = {"start": "http-server", "port": free_port()}
                client = pool.submit(query_over_http, command["port"], names(parties))
                disturb(parties, snapshot, chance, command=command, kills=kills, client=client)
                stop(parties, "data", "label")
                client.result()
        check_all(parties, snapshot)


def check_all(parties: "Parties", snapshot: Path) -> None:
    """Check that each release is charged once, and that answers are those of an undisturbed run."""
    name = name_of(parties, snapshot)
    assert name is not None
    assert charges(parties, name) == HOPS
    received = cached_embeddings(parties, name)
    assert set(received) == set(IDS)
    with open_embedding_server(
        parties.configs["data"], snapshot=snapshot, graph=snapshot.name
    ) as undisturbed:
        reply = undisturbed.reply(EmbeddingQuery(number=1, ids=tuple(IDS)), stage=HOPS)
    assert np.array_equal(reply.values, np.stack([received[text] for text in IDS]))
    assert charges(parties, name) == HOPS


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port
