"""A finished run of two parties, trained once over memory channels, copied for each test."""

import json
import queue
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.errors import PeerError
from vesper.mechanism.noise import NoiseSource
from vesper.privacy.ledger_file import open_to_read
from vesper.privacy.ledger_reader import Entry
from vesper.protocol.asking_turns import ASKING
from vesper.protocol.messages import Answer, Query, Refusal
from vesper.protocol.turns import Role
from vesper.run.ends.link import Link
from vesper.run.network import data_run, label_run, seated
from vesper.run.serving.answer_cache import AnswerCache
from vesper.run.serving.answering import open_answerer
from vesper.run.serving.asking import Asker
from vesper.run.serving.conversation import converse
from vesper.run.serving.kept_run import read_asking
from vesper.run.serving.predictor import Predictor
from vesper.run.setup.contract import approve
from vesper.run.setup.party_config import PartyConfig, load_party_config
from vesper.transport.channel import Channel
from vesper.transport.memory import MemoryChannel, memory_pair

NODES = 60
SETTINGS = {"epochs": 2, "width": 8, "seed": 3}


def write_graph(folder: Path, *, ids: list[str], first: int = 0, step: int = 1) -> None:
    """A ring over `ids`, with chords of length `step`; features depend on the position."""
    folder.mkdir(parents=True)
    spot = np.arange(first, first + len(ids))
    nodes = {"id": ids, "age": np.sin(spot), "rent": np.cos(2.0 * spot)}
    pq.write_table(pa.table(nodes), folder / "nodes.parquet")
    around = [ids[(k + 1) % len(ids)] for k in range(len(ids))]
    across = [ids[(k + step) % len(ids)] for k in range(len(ids))]
    edges = {"src": ids + ids, "dst": around + across}
    pq.write_table(pa.table(edges), folder / "edges.parquet")


class Finished:
    """Both parties' files after training."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data = load_party_config(root / "data.toml")
        self.label = load_party_config(root / "label.toml")
        assert self.data.party.ledger is not None
        self.ledger: Path = self.data.party.ledger

    @property
    def ids(self) -> list[str]:
        return [f"u{k:02d}" for k in range(NODES)]

    def snapshot(self, name: str = "later", *, step: int = 7, gone: int = 10) -> Path:
        """Ten nodes are gone, five are new, edges are others."""
        folder = self.root / name
        write_graph(folder, ids=[*self.ids[gone:], *(f"v{k}" for k in range(5))], step=step)
        return folder

    def answered(
        self,
        ids: tuple[str, ...],
        *,
        snapshot: Path | None = None,
        seed: int = 5,
        stage: int | None = None,
    ) -> Answer | Refusal:
        """Start an answerer, ask it once, and let it go."""
        noise = NoiseSource.for_simulation(seed)
        stage = read_asking(self.label).stage if stage is None else stage
        with open_answerer(self.data, snapshot=snapshot, noise=noise) as answerer:
            return answerer.reply(Query(number=1, ids=ids), stage=stage)

    def entries(self) -> list[Entry]:
        """What the ledger says."""
        with closing(open_to_read(self.ledger)) as reader:
            return list(reader.entries())

    def charges(self) -> int:
        """How many releases were paid for."""
        return sum(entry.cost > 0 for entry in self.entries())

    @contextmanager
    def asked(
        self, *, snapshot: Path | None = None, seed: int = 5, stage: int | None = None
    ) -> Iterator[Predictor]:
        """A predictor whose data party is a thread; of the stage chosen, or of this one."""
        run = read_asking(self.label)
        run = run if stage is None else replace(run, stage=stage)
        with self.answering(snapshot=snapshot, seed=seed) as connect:
            asker = Asker(connect, run, peer="platform")
            cache = AnswerCache(self.label.party.state / "cache")
            try:
                yield Predictor(run, asker, cache, peer="platform")
            finally:
                asker.close()
                cache.close()

    @contextmanager
    def answering(
        self, *, snapshot: Path | None = None, seed: int = 5
    ) -> Iterator[Callable[[float | None], Channel]]:
        """Connect to an answering data party as often as one likes."""
        arrivals: queue.SimpleQueue[MemoryChannel | None] = queue.SimpleQueue()

        def work() -> None:
            noise = NoiseSource.for_simulation(seed)
            with open_answerer(self.data, snapshot=snapshot, noise=noise) as answerer:
                while (channel := arrivals.get()) is not None:
                    with suppress(PeerError):
                        converse(answerer, Link(Role.DATA, channel, ASKING))
                    channel.close()

        def connect(limit: float | None) -> Channel:
            ours, theirs = memory_pair(patience=20)
            arrivals.put(theirs)
            return ours

        with ThreadPoolExecutor(max_workers=1) as pool:
            working = pool.submit(work)
            try:
                yield connect
            finally:
                arrivals.put(None)
            working.result()


def _trained(root: Path, settings: dict[str, Any], labels: list[Any]) -> None:
    ids = [f"u{k:02d}" for k in range(NODES)]
    write_graph(root / "data", ids=ids, step=3)
    (root / "label").mkdir()
    splits = [("train", "val", "test")[k % 3] for k in range(NODES)]
    table = {"id": ids, "label": labels, "split": splits}
    pq.write_table(pa.table(table), root / "label" / "labels.parquet")
    tables: dict[str, dict[str, Any]] = {"privacy": {"epsilon": 8.0}, "run": {**SETTINGS}}
    for key, value in settings.items():
        tables["privacy" if key in ("epsilon", "hops", "delta", "aggregator") else "run"][key] = (
            value
        )
    shared = "".join(
        f"[{table}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
        for table, values in tables.items()
    )
    tls = '[tls]\ncertificate = "a"\nkey = "b"\nauthority = "c"\n'
    for role, name, peer, extra in (
        ("data", "platform", "bank", 'ledger = "ledger.sqlite"\nlisten = "127.0.0.1:1"\n'),
        ("label", "bank", "platform", 'connect = "127.0.0.1:1"\n'),
    ):
        own = f'role = "{role}"\nname = "{name}"\npeer = "{peer}"\nfolder = "{role}"\n'
        own += f'state = "{role}-state"\npatience = 20\n{extra}'
        (root / f"{role}.toml").write_text(f"[party]\n{own}{tls}{shared}")
    configs = [load_party_config(root / f"{role}.toml") for role in ("data", "label")]
    for config in configs:
        approve(config.party.state, config.shared)
    ends = dict(zip(("data", "label"), memory_pair(patience=20), strict=True))

    @contextmanager
    def met(config: PartyConfig, **rest: Any) -> Iterator[Callable[[float | None], Channel]]:
        yield lambda limit: ends[config.party.role]

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(max_workers=1) as pool:
        patch.setattr(seated, "meeting_place", met)
        other = pool.submit(label_run.run_label_party, configs[1])
        try:
            noise = NoiseSource.for_simulation(1)
            data_run.run_data_party(configs[0], noise=noise, place=met)
        finally:
            ends["data"].close()
        other.result()


Train = Callable[..., Finished]


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    lock = threading.Lock()

    @lru_cache
    def train(kind: str, *settings: tuple[str, Any]) -> Path:
        root = tmp_path_factory.mktemp("trained")
        labels: list[Any] = [k // 3 % 2 for k in range(NODES)]
        if kind == "numbers":
            labels = [float(np.sin(k)) for k in range(NODES)]
        _trained(root, dict(settings), labels)
        return root

    def with_lock(kind: str, **settings: Any) -> Path:
        with lock:
            return train(kind, *sorted(settings.items()))

    return with_lock


@pytest.fixture
def train(trained_once: Callable[..., Path], tmp_path: Path) -> Train:
    """Give a copy of a finished run with these settings."""

    def copied(kind: str = "two", **settings: Any) -> Finished:
        root = tmp_path / "parties"
        shutil.copytree(trained_once(kind, **settings), root)
        return Finished(root)

    return copied


@pytest.fixture
def finished(train: Train) -> Finished:
    """A finished run of the default method."""
    return train()
