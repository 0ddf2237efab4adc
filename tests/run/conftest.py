"""What tests of whole runs share: two parties as processes, and an undisturbed run to compare."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from vesper.graph.graph import Graph
from vesper.graph.holdings import open_data
from vesper.graph.labels import open_labels
from vesper.mechanism.door import Door
from vesper.mechanism.perturbed_graph import Perturbation
from vesper.privacy.ledger import Ledger
from vesper.run.agreement import agree
from vesper.run.pair import train
from vesper.run.setup.contract import approve
from vesper.run.setup.party_config import load_party_config
from vesper.transport.receipts import first_difference

Role = Literal["data", "label"]
FORKS = Path(__file__).with_name("party_forks.py")


class KeptDoor:
    """Gives out what a run has kept, in order: for an undisturbed run with that run's noise."""

    def __init__(self, folder: Path) -> None:
        self._files = iter(sorted(folder.glob("*.npz")))

    def release(self, messages: Any, *, noise_std: float, aggregation: Any = None) -> Any:
        return np.load(next(self._files))["sums"]

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        kept = np.load(next(self._files))
        return Graph(kept["indptr"], kept["neighbors"])

    def spent(self) -> str:
        return ""

    def uncertified_graph(self) -> Graph:
        raise AssertionError("only releases may be asked for")


@pytest.fixture
def kept_door() -> Callable[[Path], Door]:
    """Makes a door of the folder in which a run has kept its releases."""
    return KeptDoor


class Parties:
    """Both sides as processes that can be stopped, killed and started again.

    Args:
        configs: the file of each side.
        inside: a command that runs another one, such as `ip netns exec NAME`, a side.
    """

    def __init__(self, configs: dict[Role, Path], inside: dict[Role, list[str]]) -> None:
        self.configs = {role: load_party_config(path) for role, path in configs.items()}
        self._paths = configs
        for config in self.configs.values():
            approve(config.party.state, config.shared)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GRPC_ENABLE_FORK_SUPPORT": "0"}
        self._forks = {
            role: subprocess.Popen(
                [*inside.get(role, []), sys.executable, str(FORKS)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
            for role in configs
        }
        self.pids: dict[Role, int] = {}
        self.kills = 0

    def _ask(self, role: Role, **question: Any) -> Any:
        forks = self._forks[role]
        assert forks.stdin
        assert forks.stdout
        forks.stdin.write(json.dumps(question) + "\n")
        forks.stdin.flush()
        return json.loads(forks.stdout.readline())

    def start(self, role: Role, **limits: int) -> None:
        """Start a side, or let it go on."""
        resume = (self.configs[role].party.state / "session").exists()
        self.begin(role, start=role, resume=resume, **limits)

    def begin(self, role: Role, **asked: Any) -> None:
        """Let a side begin something, as `party_forks` says."""
        self.pids[role] = self._ask(role, config=str(self._paths[role]), **asked)["pid"]

    def kill(self, role: Role, how: signal.Signals = signal.SIGKILL) -> None:
        os.kill(self.pids[role], how)
        self.kills += how is signal.SIGKILL

    def code(self, role: Role) -> int | None:
        """The exit code; None while it runs."""
        code: int | None = self._ask(role, poll=self.pids[role])["code"]
        return code

    def wait(self, role: Role, *, limit: float = 120.0) -> int:
        deadline = time.monotonic() + limit
        while (code := self.code(role)) is None:
            assert time.monotonic() < deadline, (self.log("data"), self.log("label"))
            time.sleep(0.02)
        return code

    def log(self, role: Role) -> str:
        path = Path(f"{self._paths[role]}.log")
        return path.read_text() if path.exists() else ""

    def wait_for(self, role: Role, text: str, *, limit: float = 60.0) -> float:
        """Wait until a side has said something; give the seconds it took."""
        began = time.monotonic()
        while text not in self.log(role):
            assert time.monotonic() - began < limit, (self.log("data"), self.log("label"))
            time.sleep(0.02)
        return time.monotonic() - began

    def wait_for_frames(self, count: int, *, limit: float = 60.0) -> None:
        """Wait until so many frames have crossed, as the data side sees it."""
        path, began = self.configs["data"].party.state / "receipts.tsv", time.monotonic()
        while not path.exists() or path.read_text().count("\n") < count:
            assert time.monotonic() - began < limit, (self.log("data"), self.log("label"))
            time.sleep(0.02)

    def charged(self) -> int:
        """How many releases the ledger has charged."""
        path = self.configs["data"].party.ledger
        assert path is not None
        with closing(Ledger(path, clock=time.time)) as ledger:
            assert ledger.verify() is None
            return sum(entry.cost > 0 for entry in ledger.entries())

    def check(self, *, releases: int) -> None:
        """Each release charged and kept once; receipts agree; weights as of an undisturbed run."""
        ours, theirs = self.configs["data"].party, self.configs["label"].party
        assert self.charged() == releases
        assert len(list((ours.state / "releases").glob("*.npz"))) >= releases
        assert first_difference(ours.state / "receipts.tsv", theirs.state / "receipts.tsv") is None
        data, labels = open_data(ours.folder), open_labels(theirs.folder)
        agreement = agree(self.configs["data"].shared, data, labels)
        undisturbed = train(agreement, data, labels, KeptDoor(ours.state / "releases"))
        for own, module in (
            (ours, undisturbed.data_side.module),
            (theirs, undisturbed.label_side.module),
        ):
            weights = np.load(own.state / "result" / f"{own.role}_party.npz")
            expected = module.state_dict()
            assert set(weights.files) == set(expected)
            for name, value in expected.items():
                assert np.array_equal(weights[name], value.numpy()), name

    def close(self) -> None:
        for pid in self.pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for forks in self._forks.values():
            forks.kill()
            forks.communicate()


@pytest.fixture
def two_parties(institutions: Any) -> Iterator[Callable[..., Parties]]:
    """Makes both parties with these settings: some of [privacy], a line [run], some of [run]."""
    with ExitStack() as made:

        def make(settings: str, **inside: list[str]) -> Parties:
            institutions.change("\n[run]\n", f"\n{settings}\n")
            roles: tuple[Role, Role] = ("data", "label")
            configs = dict(zip(roles, institutions.settings, strict=True))
            commands = {role: inside[role] for role in roles if role in inside}
            return made.enter_context(closing(Parties(configs, commands)))

        yield make
