"""Kill who answers or asks at any moment: what is sent was charged, once, and stays the same."""

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
from vesper.protocol.messages import EmbeddingQuery, QueryAnswer
from vesper.serving.embedding_cache import Embedding, EmbeddingCache
from vesper.serving.embedding_server import open_embedding_server

if TYPE_CHECKING:
    from tests.fixtures.processes import Parties

Role = Literal["data", "label"]
HOPS = 2
IDS = [str(k) for k in range(40)]
LIMIT = 240.0
"""Seconds after which an answer that does not come has got lost."""
LONGEST = 1.5
"""Seconds between two kills, at most."""


def trained(parties: "Parties") -> None:
    """Train, and let the last stage be asked for, which needs every release."""
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
    """What the data party calls the snapshots that it has met."""
    kept = parties.configs["data"].party.state / "snapshots"
    return {path.parent.name for path in kept.glob("*/snapshot.json")}


def name_of(parties: "Parties", snapshot: Path) -> str | None:
    """What the data party calls a snapshot; None before it has met it."""
    kept = parties.configs["data"].party.state / "snapshots"
    for name in names(parties):
        facts = json.loads((kept / name / "snapshot.json").read_text())
        if facts["folder"] == str(snapshot.resolve()):
            return name
    return None


def cached_embeddings(parties: "Parties", name: str) -> dict[str, Embedding]:
    """What the label party has been told about a snapshot."""
    with closing(EmbeddingCache(parties.configs["label"].party.state / "cache")) as cache:
        return cache.find(name, HOPS, IDS)


def charges(parties: "Parties", name: str) -> int:
    path = parties.configs["data"].party.ledger
    assert path is not None
    with closing(Ledger(path, clock=time.time)) as ledger:
        assert ledger.verify() is None
        entries = [e for e in ledger.entries() if e.run == f"snapshot {name}" and e.cost > 0]
        return len(entries)


def check_so_far(parties: "Parties", snapshot: Path) -> None:
    """Nothing was sent that is not charged, and nothing is charged twice."""
    name = name_of(parties, snapshot)
    if name is not None:
        told = cached_embeddings(parties, name)
        charged = charges(parties, name)
        assert charged <= HOPS
        assert charged == HOPS or not told


def served(port: int, old: set[str]) -> None:
    """Ask over HTTP until everything is answered, whoever is away meanwhile.

    While the data party is away the cache answers about the graph before: `old` are the names.
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
        told = [each for each in content.get("predictions", []) if "error" not in each]
        answered = {each["id"] for each in told if each["snapshot"] not in old}
        left = [text for text in left if text not in answered]


def disturbed(
    parties: "Parties",
    snapshot: Path,
    chance: random.Random,
    *,
    asking: dict[str, Any],
    kills: int,
    client: "Future[None] | None" = None,
) -> None:
    """Kill and start again until all is answered; after so many kills, leave them alone."""
    work: dict[Role, dict[str, Any]] = {
        "data": {"start": "answer", "snapshot": str(snapshot)},
        "label": asking,
    }
    for role, asked in work.items():
        parties.start_party(role, **asked)
    deadline = time.monotonic() + LIMIT
    next_kill, killed = time.monotonic() + chance.uniform(0, LONGEST), 0
    while client is None or not client.done():
        assert time.monotonic() < deadline, (parties.log("data"), parties.log("label"))
        time.sleep(0.01)
        for role, asked in work.items():
            code = parties.code(role)
            if code is None:
                continue
            if code == 0 and role == "label" and client is None:
                return
            expected = (-signal.SIGKILL, 4) if role == "label" else (-signal.SIGKILL,)
            assert code in expected, (role, code, parties.log("data"), parties.log("label"))
            parties.start_party(role, **asked)
        if killed < kills and time.monotonic() > next_kill:
            parties.kill(chance.choice(list(work)))
            check_so_far(parties, snapshot)
            next_kill, killed = time.monotonic() + chance.uniform(0, LONGEST), killed + 1


def stopped(parties: "Parties", *roles: Role) -> None:
    """Kill them, and wait until they are gone."""
    for role in roles:
        parties.kill(role)
        parties.wait(role)


@pytest.mark.parametrize("asking", ["predict", "serve"])
@pytest.mark.parametrize(
    ("snapshots", "kills"), [(1, 4), pytest.param(25, 8, marks=pytest.mark.nightly)]
)
def test_killed_at_any_moment(
    two_parties: "Callable[[str], Parties]",
    tmp_path: Path,
    asking: str,
    snapshots: int,
    kills: int,
) -> None:
    parties = two_parties(f"hops = {HOPS}\n[run]\nepochs = 1\nbatch_size = 20")
    trained(parties)
    chance = random.Random(f"{asking} {snapshots}")
    for number in range(snapshots):
        snapshot = write_snapshot(tmp_path / f"snapshot-{number}", seed=number)
        with ThreadPoolExecutor(1) as pool:
            if asking == "predict":
                asked: dict[str, Any] = {"start": "predict", "ids": IDS}
                disturbed(parties, snapshot, chance, asking=asked, kills=kills)
                stopped(parties, "data")
            else:
                asked = {"start": "serve", "port": free_port()}
                client = pool.submit(served, asked["port"], names(parties))
                disturbed(parties, snapshot, chance, asking=asked, kills=kills, client=client)
                stopped(parties, "data", "label")
                client.result()
        check_whole(parties, snapshot)


def check_whole(parties: "Parties", snapshot: Path) -> None:
    """Each release charged once; all that was ever told is what an undisturbed side would tell."""
    name = name_of(parties, snapshot)
    assert name is not None
    assert charges(parties, name) == HOPS
    told = cached_embeddings(parties, name)
    assert set(told) == set(IDS)
    with open_embedding_server(parties.configs["data"], snapshot=snapshot) as undisturbed:
        reply = undisturbed.reply(EmbeddingQuery(number=1, ids=tuple(IDS)), stage=HOPS)
    assert isinstance(reply, QueryAnswer)
    assert np.array_equal(reply.values, np.stack([told[text] for text in IDS]))
    assert charges(parties, name) == HOPS


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port
