"""What tests of whole runs share: two parties as processes, and an undisturbed run to compare."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from vesper.graph.graph import Graph
from vesper.graph.holdings import open_data
from vesper.graph.labels import open_labels
from vesper.mechanism.door import Door
from vesper.mechanism.perturbed_graph import Perturbation
from vesper.privacy.ledger import Ledger
from vesper.run.agreement import agree
from vesper.run.identity.authority import read_authority, sign
from vesper.run.identity.request import make_request
from vesper.run.pair import train
from vesper.run.setup.contract import approve
from vesper.run.setup.label_table import LabelTable, load_table
from vesper.run.setup.party_config import PartyConfig, load_party_config
from vesper.transport.receipts import first_difference

if TYPE_CHECKING:
    from tests.conftest import Institutions

Role = Literal["data", "label"]
SHORT = "hops = 2\n[run]\nepochs = 2\nbatch_size = 8\n"
FORKS = Path(__file__).with_name("party_forks.py")
LIMIT = 300.0
"""Seconds after which a run that does not end has hung."""


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


class Forks:
    """Parties as processes that can be killed and started again.

    Args:
        files: the settings of each, by name.
        inside: a command that runs another one, such as `ip netns exec NAME`, by name.
    """

    def __init__(self, files: Mapping[str, Path], inside: Mapping[str, list[str]]) -> None:
        self.files = files
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GRPC_ENABLE_FORK_SUPPORT": "0"}
        self._forks = {
            name: subprocess.Popen(
                [*inside.get(name, []), sys.executable, str(FORKS)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
            for name in files
        }
        self.pids: dict[str, int] = {}
        self.kills = 0

    def _ask(self, name: str, **question: Any) -> Any:
        forks = self._forks[name]
        assert forks.stdin
        assert forks.stdout
        forks.stdin.write(json.dumps(question) + "\n")
        forks.stdin.flush()
        return json.loads(forks.stdout.readline())

    def begin(self, name: str, **asked: Any) -> None:
        """Let one begin something, as `party_forks` says."""
        self.pids[name] = self._ask(name, config=str(self.files[name]), **asked)["pid"]

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        os.kill(self.pids[name], how)
        self.kills += how is signal.SIGKILL

    def code(self, name: str) -> int | None:
        """The exit code; None while it runs."""
        code: int | None = self._ask(name, poll=self.pids[name])["code"]
        return code

    def log(self, name: str) -> str:
        path = Path(f"{self.files[name]}.log")
        return path.read_text() if path.exists() else ""

    def disturb(
        self, start: Callable[[str], None], chance: random.Random, *, kills: int, longest: float
    ) -> None:
        """Kill and start again until all have finished; after so many kills, leave them alone."""
        running = dict.fromkeys(self.files, True)
        for name in running:
            start(name)
        deadline = time.monotonic() + LIMIT + kills * (longest + 2)
        next_kill = time.monotonic() + chance.uniform(0, longest)
        while any(running.values()):
            logs = {name: self.log(name) for name in running}
            assert time.monotonic() < deadline, logs
            time.sleep(0.01)
            for name in [name for name, is_running in running.items() if is_running]:
                code = self.code(name)
                if code is None:
                    continue
                if code == -signal.SIGKILL:
                    start(name)
                    continue
                assert code == 0, (name, code, logs)
                running[name] = False
            if self.kills < kills and time.monotonic() > next_kill:
                alive = [name for name, is_running in running.items() if is_running]
                everybody = not alive or chance.random() >= 0.85
                for name in alive if everybody else [chance.choice(alive)]:
                    self.kill(name)
                next_kill = time.monotonic() + chance.uniform(0, longest)

    def close(self) -> None:
        for pid in self.pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for forks in self._forks.values():
            forks.kill()
            forks.communicate()


@pytest.fixture
def forks() -> Iterator[Callable[[Mapping[str, Path]], Forks]]:
    """Makes processes of parties whose settings were approved."""
    with ExitStack() as made:
        yield lambda files: made.enter_context(closing(Forks(files, {})))


class Parties(Forks):
    """Both sides of a run, and what has to be true of them in the end."""

    def __init__(self, configs: dict[Role, Path], inside: dict[Role, list[str]]) -> None:
        self.configs = {role: load_party_config(path) for role, path in configs.items()}
        for config in self.configs.values():
            approve(config.party.state, config.shared)
        super().__init__(dict[str, Path](configs.items()), dict[str, list[str]](inside.items()))

    def start(self, role: str, **limits: int) -> None:
        """Start a side, or let it go on."""
        resume = (self.configs[cast("Role", role)].party.state / "session").exists()
        self.begin(role, start=role, resume=resume, **limits)

    def wait(self, role: Role, *, limit: float = 120.0) -> int:
        deadline = time.monotonic() + limit
        while (code := self.code(role)) is None:
            assert time.monotonic() < deadline, (self.log("data"), self.log("label"))
            time.sleep(0.02)
        return code

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


class Several:
    """A bank that trains with a platform, a telecom and, where asked, a graph of its own."""

    def __init__(self, institutions: "Institutions") -> None:
        self.root = institutions.root
        self.label_file = institutions.settings[1]
        self._certify("telecom", institutions)
        self.data_files = {"platform": institutions.settings[0]}
        first = self.data_files["platform"].read_text()
        self.data_files["telecom"] = self.root / "telecom" / "data.toml"
        self.data_files["telecom"].write_text(
            re.sub(r'"127.0.0.1:\d+"', f'"127.0.0.1:{_free_port()}"', first)
            .replace('name = "platform"', 'name = "telecom"')
            .replace("tls/platform", "tls/telecom")
        )
        self._folder(self.root / "telecom" / "data", step=2)
        self._folder(self.root / "bank" / "transfers", step=5)

    def sit_down(self, **of_party: str) -> None:
        """Write the bank's file: a table a data party, with these further lines."""
        tables = []
        for name, path in self.data_files.items():
            address = re.findall(r'"(127.0.0.1:\d+)"', path.read_text())[0]
            tables.append(f'name = "{name}"\nconnect = "{address}"\n{of_party.get(name, "")}')
        if "own" in of_party:
            own = 'name = "transfers"\nown = true\nfolder = "transfers"\nledger = "own.sqlite"\n'
            tables.append(own + of_party["own"])
        text = re.sub(r"(?m)^(peer|connect) = .*$", "", self.label_file.read_text())
        listed = "\n".join(f"[[data_party]]\n{table}\n" for table in tables)
        self.label_file.write_text(f"{text}\n{listed}")

    def change(self, old: str, new: str, *names: str) -> None:
        """Replace a text in the files of these parties, or of all."""
        files = {**self.data_files, "bank": self.label_file}
        for name in names or files:
            files[name].write_text(files[name].read_text().replace(old, new))

    def table(self) -> LabelTable:
        """The bank's settings, approved."""
        table = load_table(self.label_file)
        for config in table.everyone:
            approve(config.party.state, config.shared)
        return table

    def data(self, name: str) -> PartyConfig:
        """A data party's settings, approved."""
        config = load_party_config(self.data_files[name])
        approve(config.party.state, config.shared)
        return config

    def _certify(self, name: str, institutions: "Institutions") -> None:
        now = datetime.now(UTC)
        folder = institutions.root / name
        folder.mkdir()
        authority = read_authority(institutions.root / "authority", now=now)
        certificate = sign(authority, make_request(name, [], folder / "tls")[2], days=2, now=now)
        (folder / "tls" / f"{name}.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
        shared = institutions.data / "tls" / "authority.pem"
        (folder / "tls" / "authority.pem").write_bytes(shared.read_bytes())

    @staticmethod
    def _folder(folder: Path, *, step: int) -> None:
        """The same sixty nodes with other features and other edges."""
        folder.mkdir()
        nodes = {"id": range(60), "calls": [float(k % (step + 3)) for k in range(60)]}
        pq.write_table(pa.table(nodes), folder / "nodes.parquet")
        edges = {"src": range(60), "dst": [(k + step) % 60 for k in range(60)]}
        pq.write_table(pa.table(edges), folder / "edges.parquet")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


@pytest.fixture
def several(institutions: "Institutions") -> Several:
    """A short run; a lost peer ends it."""
    parties = Several(institutions)
    parties.change("\n[run]\n", f"\n{SHORT}\n")
    parties.change("patience = 30.0", "patience = 5.0")
    parties.change('when_lost = "wait"', 'when_lost = "stop"')
    return parties
