"""Two parties, or several, with files of their own, in one process, over loopback."""

import re
import socket
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from vesper.privacy.ledger import Ledger
from vesper.run.identity.authority import read_authority, sign
from vesper.run.identity.request import make_request
from vesper.run.network.data_run import run_data_party
from vesper.run.network.label_run import run_label_party
from vesper.run.result import DataResult, LabelResult
from vesper.run.setup.contract import approve
from vesper.run.setup.label_table import LabelTable, load_table
from vesper.run.setup.party_config import PartyConfig, load_party_config

if TYPE_CHECKING:
    from tests.conftest import Institutions

SETTINGS = "hops = 2\n[run]\nepochs = 2\nbatch_size = 8\n"


class Both:
    """What tests do with the two of them."""

    def __init__(self, institutions: "Institutions") -> None:
        self.settings, self.change = institutions.settings, institutions.change

    def configs(self, *, approved: bool = True) -> tuple[PartyConfig, PartyConfig]:
        """Both files, read and approved."""
        data, label = (load_party_config(path) for path in self.settings)
        for config in (data, label):
            if approved:
                approve(config.party.state, config.shared)
        return data, label

    def run(
        self,
        data: PartyConfig,
        label: PartyConfig,
        *,
        of_label: dict[str, Any] | None = None,
        **of_data: Any,
    ) -> tuple[Future[DataResult], Future[LabelResult]]:
        """Run both until both have ended."""
        with ThreadPoolExecutor(2) as pool:
            return (
                pool.submit(run_data_party, data, **of_data),
                pool.submit(run_label_party, label, **(of_label or {})),
            )

    def charged(self, config: PartyConfig) -> int:
        """How many releases the ledger has charged."""
        assert config.party.ledger is not None
        with closing(Ledger(config.party.ledger, clock=lambda: 0.0)) as ledger:
            return sum(entry.cost > 0 for entry in ledger.entries())


@pytest.fixture
def both(institutions: "Institutions") -> Both:
    """A short run; a lost peer ends it."""
    institutions.change("\n[run]\n", f"\n{SETTINGS}\n")
    institutions.change("patience = 30.0", "patience = 5.0")
    institutions.change('when_lost = "wait"', 'when_lost = "stop"')
    return Both(institutions)


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
    parties.change("\n[run]\n", f"\n{SETTINGS}\n")
    parties.change("patience = 30.0", "patience = 5.0")
    parties.change('when_lost = "wait"', 'when_lost = "stop"')
    return parties
