"""Worlds in which an older graph under another name has, or has not, the edges of a snapshot."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest
from tests.fixtures.finished_run import LATER_GRAPH, FinishedRun, write_graph

from vesper.graph.holdings import open_data
from vesper.mechanism.door import open_graph_account
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import GaussianRelease
from vesper.privacy.ledger.store import Ledger
from vesper.protocol.codec import encode
from vesper.protocol.messages import EmbeddingQuery
from vesper.serving.embedding_server import open_embedding_server

UNCERTIFIED, CERTIFIED, SPENT = "uncertified", "certified", "spent"


def charge_older_graph(ledger: Path, folder: Path, history: str) -> None:
    """Use a graph under another name, in one of three ways."""
    graph = open_data(folder).graph
    with closing(Ledger(ledger, clock=lambda: 0.0)) as book:
        if history == UNCERTIFIED:
            account = open_graph_account(graph, "older", ledger=book, simulated=True)
            account.note_unprotected(run="older run", plan="none")
            return
        budget = Budget(epsilon=8.0 if history == SPENT else 20.0, delta=1e-5)
        account = open_graph_account(graph, "older", ledger=book, budget=budget, simulated=True)
        mu_squared = account.left_mu_squared
        assert mu_squared is not None
        account.charge(GaussianRelease(noise_std=1.001 / mu_squared**0.5), None, run="older run")


def frames_and_log(world: FinishedRun, snapshot: Path) -> tuple[list[bytes], list[str]]:
    """All that the label party receives, and what the data party reads."""
    log: list[str] = []
    frames = []
    with open_embedding_server(
        world.data,
        snapshot=snapshot,
        graph=LATER_GRAPH,
        noise=NoiseSource.for_simulation(5),
        log=log.append,
    ) as server:
        frames.append(encode(server.hello))
        for number, ids in enumerate([(), ("u20", "v1", "nobody"), ()]):
            frames.append(encode(server.reply(EmbeddingQuery(number, ids), stage=1)))
    return frames, log


@pytest.mark.parametrize("history", [UNCERTIFIED, CERTIFIED, SPENT])
def test_replies_do_not_depend_on_whether_an_older_graph_has_the_same_edges(
    finished: FinishedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, history: str
) -> None:
    monkeypatch.setattr("vesper.serving.snapshots.secrets.token_hex", lambda size: "0" * 2 * size)
    seen = []
    for world in ("equal", "different"):
        copy = FinishedRun(Path(shutil.copytree(finished.root, tmp_path / world)))
        older = copy.snapshot("older", step=7)
        if world == "different":
            shutil.rmtree(older)
            ids = [*finished.ids[10:], *(f"v{k}" for k in range(5))]
            write_graph(older, ids=[ids[2 * k % len(ids)] for k in range(len(ids))], step=3)
        charge_older_graph(copy.ledger, older, history)
        seen.append(frames_and_log(copy, copy.snapshot("later", step=7)))
    assert seen[0][0] == seen[1][0]
    warnings = [[line for line in log if "shares" in line] for _, log in seen]
    assert ["'older'" in line for line in warnings[0]] == [True], "the owner is warned"
    assert warnings[1] == []


def test_a_rewritten_folder_keeps_its_name_and_its_releases_whatever_its_edges(
    finished: FinishedRun, tmp_path: Path
) -> None:
    seen = []
    folder = finished.snapshot("later", step=7)
    first, _ = frames_and_log(finished, folder)
    before = finished.charges()
    for world, step in (("equal", 7), ("different", 9)):
        copy = FinishedRun(Path(shutil.copytree(finished.root, tmp_path / world)))
        shutil.rmtree(folder)
        finished.snapshot("later", step=step)
        seen.append(frames_and_log(copy, folder)[0])
        assert copy.charges() == before
    assert seen[0] == seen[1]
    assert seen[0][0] == first[0]
    assert seen[0][2] == first[2]
