"""Parties on loopback: folders, certificates, settings and approved contracts.

A bank with labels, a platform with a graph, and optionally a telecom with another graph and a graph
of the bank's own. Sixty nodes each, so that a run takes seconds and starting it most of them.
"""

import re
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.serialization import Encoding

from vesper.deployment.config.multi_party_config import load_multi_party_config
from vesper.deployment.config.party_config import load_party_config
from vesper.deployment.config.template import RoleName, write_template
from vesper.deployment.identity.authority import make_authority, sign
from vesper.deployment.identity.request import make_request
from vesper.session.contract import approve

NODES = 60
VALID_DAYS = 800
"""Certificates are valid for half of that in both directions, so that clocks may jump."""


class Institutions:
    """A bank and its data parties in one folder, each with a folder of its own."""

    def __init__(self, root: Path, *, several: bool = False) -> None:
        self.root, self.several = root, several
        self.data_names = ["platform", "telecom"] if several else ["platform"]
        now = datetime.now(UTC) - timedelta(days=VALID_DAYS / 2)
        authority = make_authority(root / "authority", name="chaos", now=now)
        pem = authority.certificate.public_bytes(Encoding.PEM)
        for name in (*self.data_names, "bank"):
            request = make_request(name, [], root / name / "tls")[2]
            signed = sign(authority, request, days=VALID_DAYS, now=now)
            tls = root / name / "tls"
            (tls / f"{name}.pem").write_bytes(signed.public_bytes(Encoding.PEM))
            (tls / "authority.pem").write_bytes(pem)
        for step, name in enumerate(self.data_names, start=1):
            write_graph(root / name / "data", step=3 * step - 2)
        write_labels(root / "bank" / "label")
        if several:
            write_graph(root / "bank" / "transfers", step=7)

    def file(self, name: str) -> Path:
        """TOML file of a party."""
        return self.root / name / f"{name}.toml"

    def settings(self, privacy: str = "", run: str = "", party: str = "") -> None:
        """Write and approve the settings of all parties, with these further lines."""
        run = f"epochs = 2\nbatch_size = 8\nwidth = 8\n{run}"
        addresses = {name: f"127.0.0.1:{free_port()}" for name in self.data_names}
        for name in (*self.data_names, "bank"):
            role: RoleName = "label" if name == "bank" else "data"
            path = self.file(name)
            path.unlink(missing_ok=True)
            ledger = Path("ledger.sqlite")
            write_template(
                path, role, graph=f"{name}-graph" if role == "data" else None, ledger=ledger
            )
            text = (
                path.read_text().replace('"platform"', f'"{name}"')
                if role == "data"
                else (path.read_text())
            )
            text = text.replace("tls/platform", f"tls/{name}")
            own = addresses.get(name, addresses["platform"])
            text = re.sub(r'"[^"\n]+:7101"', f'"{own}"', text)
            text = text.replace("patience = 30.0", "patience = 4.0")
            text = _with_lines(text, "privacy", privacy)
            text = _with_lines(text, "run", run)
            text = _with_lines(text, "party", party if role == "data" else "")
            if role == "label" and self.several:
                text = re.sub(r"(?m)^(peer|connect) = .*$", "", text)
                for other, address in addresses.items():
                    text += f'\n[[data_party]]\nname = "{other}"\nconnect = "{address}"\n'
                text += (
                    '\n[[data_party]]\nname = "transfers"\nown = true\nfolder = "transfers"\n'
                    'graph = "transfers"\nledger = "own.sqlite"\n'
                )
            path.write_text(text)
        self.approve_all()

    def approve_all(self) -> None:
        """Approve the contracts of all parties."""
        for name in self.data_names:
            config = load_party_config(self.file(name))
            approve(config.party.state, config.shared)
        for config in load_multi_party_config(self.file("bank")).all_configs:
            approve(config.party.state, config.shared)

    def has_started(self, name: str) -> bool:
        """Whether a party has a session that it must resume."""
        state = self.root / name / "state"
        if name == "bank" and self.several:
            return any(state.glob("with/*/session"))
        return (state / "session").exists()


def _with_lines(text: str, table: str, lines: str) -> str:
    """Add settings to a table, in place of those with the same keys."""
    head, _, rest = text.partition(f"\n[{table}]\n")
    own, separator, after = rest.partition("\n[")
    for key in re.findall(r"(?m)^(\w+) =", lines):
        own = re.sub(rf"(?m)^{key} = .*\n", "", own)
    return f"{head}\n[{table}]\n{lines}\n{own}{separator}{after}"


def write_graph(folder: Path, *, step: int, nodes: int = NODES) -> None:
    """Write a ring with chords, and two features."""
    folder.mkdir(parents=True)
    facts = {
        "id": range(nodes),
        "age": [float(k % (step + 6)) for k in range(nodes)],
        "rent": [float(k * k % 11) for k in range(nodes)],
    }
    pq.write_table(pa.table(facts), folder / "nodes.parquet")
    edges = {
        "src": [*range(nodes), *range(nodes)],
        "dst": [(k + d) % nodes for d in (step, 2 * step + 1) for k in range(nodes)],
    }
    pq.write_table(pa.table(edges), folder / "edges.parquet")


def write_labels(folder: Path, *, nodes: int = NODES) -> None:
    """Write labels of two classes, a third of them for each split."""
    folder.mkdir(parents=True)
    splits = [("train", "val", "test")[k % 3] for k in range(nodes)]
    labels = {"id": range(nodes), "label": [k // 3 % 2 for k in range(nodes)], "split": splits}
    pq.write_table(pa.table(labels), folder / "labels.parquet")


def free_port() -> int:
    """Find a port that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port
