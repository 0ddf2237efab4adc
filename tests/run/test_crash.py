"""Kill either side at any moment: the same weights in the end, nothing spent or drawn twice."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from vesper.graph.holdings import open_data
from vesper.graph.labels import open_labels
from vesper.mechanism.door import Door
from vesper.privacy.ledger import Ledger
from vesper.run.agreement import agree
from vesper.run.contract import approve
from vesper.run.pair import train
from vesper.run.party_config import PartyConfig, load_party_config
from vesper.transport.receipts import first_difference

Role = Literal["data", "label"]
FORKS = Path(__file__).with_name("party_forks.py")
LIMIT = 300.0
"""Seconds after which a run that does not end has hung."""


class Parties:
    """Both sides as processes that can be killed and started again."""

    def __init__(self, configs: dict[Role, Path]) -> None:
        self._configs = configs
        self._forks = subprocess.Popen(
            [sys.executable, str(FORKS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "GRPC_ENABLE_FORK_SUPPORT": "0"},
        )
        self.pids: dict[Role, int] = {}
        self.kills = 0

    def _ask(self, **question: Any) -> Any:
        assert self._forks.stdin
        assert self._forks.stdout
        self._forks.stdin.write(json.dumps(question) + "\n")
        self._forks.stdin.flush()
        return json.loads(self._forks.stdout.readline())

    def start(self, role: Role) -> None:
        config = load_party_config(self._configs[role])
        resume = (config.party.state / "session").exists()
        asked = {"start": role, "config": str(self._configs[role]), "resume": resume}
        self.pids[role] = self._ask(**asked)["pid"]

    def kill(self, role: Role) -> None:
        os.kill(self.pids[role], signal.SIGKILL)
        self.kills += 1

    def code(self, role: Role) -> int | None:
        code: int | None = self._ask(poll=self.pids[role])["code"]
        return code

    def log(self, role: Role) -> str:
        path = Path(f"{self._configs[role]}.log")
        return path.read_text() if path.exists() else ""

    def close(self) -> None:
        for pid in self.pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._forks.kill()
        self._forks.communicate()


def disturbed(parties: Parties, chance: random.Random, *, kills: int, longest: float) -> None:
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


@contextmanager
def parties_of(
    institutions: Any, settings: str
) -> Iterator[tuple[Parties, dict[Role, PartyConfig]]]:
    """Both parties with these settings: some of [privacy], a line [run], some of [run]."""
    institutions.change("\n[run]\n", f"\n{settings}\n")
    paths: dict[Role, Path] = dict(zip(("data", "label"), institutions.settings, strict=True))
    configs = {role: load_party_config(path) for role, path in paths.items()}
    for config in configs.values():
        approve(config.party.state, config.shared)
    with closing(Parties(paths)) as parties:
        yield parties, configs


def check(
    configs: dict[Role, PartyConfig], kept_door: Callable[[Path], Door], *, releases: int
) -> None:
    ours, theirs = configs["data"].party, configs["label"].party
    assert ours.ledger is not None
    with closing(Ledger(ours.ledger, clock=time.time)) as ledger:
        assert ledger.verify() is None
        entries = list(ledger.entries())
    assert sum(entry.cost > 0 for entry in entries) == releases
    assert sum(entry.facts["kind"] == "kept" for entry in entries) == releases
    assert first_difference(ours.state / "receipts.tsv", theirs.state / "receipts.tsv") is None
    data, labels = open_data(ours.folder), open_labels(theirs.folder)
    agreement = agree(configs["data"].shared, data, labels)
    undisturbed = train(agreement, data, labels, kept_door(ours.state / "releases"))
    for config, module in (
        (ours, undisturbed.data_side.module),
        (theirs, undisturbed.label_side.module),
    ):
        weights = np.load(config.state / "result" / f"{config.role}_party.npz")
        expected = module.state_dict()
        assert set(weights.files) == set(expected)
        for name, value in expected.items():
            assert np.array_equal(weights[name], value.numpy()), name


@pytest.mark.parametrize(
    ("seed", "kills"),
    [(0, 6), *(pytest.param(seed, 50, marks=pytest.mark.nightly) for seed in range(1, 9))],
)
def test_killed_at_any_moment(
    institutions: Any, kept_door: Callable[[Path], Door], seed: int, kills: int
) -> None:
    epochs = 6 * kills
    settings = f"hops = 2\n[run]\nepochs = {epochs}\npatience = {epochs}\nbatch_size = 8"
    with parties_of(institutions, settings) as (parties, configs):
        disturbed(parties, random.Random(seed), kills=kills, longest=1.2)
        assert parties.kills >= kills
    check(configs, kept_door, releases=2)
