"""Both institutions on this machine: folders, new certificates, settings, two real processes.

    root/  authority/   platform/ data.toml tls/ state/   bank/ label.toml tls/ state/

Data crosses loopback sockets with mutual TLS, as between two machines.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding

from vesper.deployment.config.party_config import load_party_config
from vesper.deployment.identity.authority import Authority, make_authority, sign
from vesper.deployment.identity.request import make_request
from vesper.errors import VesperError
from vesper.session.contract import approve

DATA, LABEL = "platform", "bank"
ROLES = {DATA: "data", LABEL: "label"}

REHEARSAL_GRAPH = "rehearsal"
"""Name of the graph in the platform's ledger."""

SharedTables = Mapping[str, Mapping[str, Any]]
"""Tables [privacy] and [run]."""


@dataclass(frozen=True)
class LocalPair:
    """Two institutions, ready to run."""

    root: Path

    def file(self, name: str) -> Path:
        """Settings file of one of the two."""
        return self.root / name / f"{ROLES[name]}.toml"

    def state(self, name: str) -> Path:
        """State folder of one of the two."""
        return self.root / name / "state"

    @property
    def ledger(self) -> Path:
        """The platform's ledger."""
        return self.root / DATA / "ledger.sqlite"


def set_up_local_pair(root: Path, parties: Path, shared: SharedTables) -> LocalPair:
    """Set up both institutions below `root`, approved, from party folders `data/` and `label/`."""
    now, pair = datetime.now(UTC), LocalPair(root)
    authority = make_authority(root / "authority", name="rehearsal", now=now)
    port = _free_port()
    for name, role in ROLES.items():
        tls = root / name / "tls"
        _certify(authority, name, tls, now)
        peer = LABEL if name == DATA else DATA
        party: dict[str, Any] = {"role": role, "name": name, "peer": peer, "state": "state"}
        party["folder"] = str((parties / role).absolute())
        if name == DATA:
            party |= {"graph": REHEARSAL_GRAPH, "ledger": pair.ledger.name}
            party["listen"] = f"127.0.0.1:{port}"
        else:
            party["connect"] = f"127.0.0.1:{port}"
        files = {"certificate": f"{name}.pem", "key": f"{name}.key", "authority": "authority.pem"}
        tls_paths = {what: f"tls/{file}" for what, file in files.items()}
        tables: SharedTables = {"party": party, "tls": tls_paths, **shared}
        pair.file(name).write_text(_toml(tables), encoding="utf-8")
        config = load_party_config(pair.file(name))
        approve(config.party.state, config.shared)
    return pair


@contextmanager
def run_both_parties(pair: LocalPair) -> Iterator[Iterator[tuple[str, str]]]:
    """Run both as processes; yield an iterator over (name of the party, line of its output).

    Raises:
        VesperError: one of the two failed; the message has its last line of output.
    """
    output: SimpleQueue[tuple[str, str | None]] = SimpleQueue()
    processes = {name: _start(pair, name) for name in ROLES}
    last: dict[str, str] = {}

    def read_lines(name: str) -> None:
        stream = processes[name].stderr
        assert stream is not None
        for line in stream:
            output.put((name, line.rstrip()))
        output.put((name, None))

    def lines() -> Iterator[tuple[str, str]]:
        running_names = set(processes)
        while running_names:
            name, line = output.get()
            if line is None:
                running_names.remove(name)
            else:
                last[name] = line
                yield name, line

    for name in processes:
        Thread(target=read_lines, args=(name,), daemon=True).start()
    try:
        yield lines()
        for name, process in processes.items():
            if process.wait() != 0:
                raise VesperError(f"{name} failed: {last.get(name, 'it output nothing')}")
    finally:
        for process in processes.values():
            process.kill()
            process.communicate()


def _start(pair: LocalPair, name: str) -> "subprocess.Popen[str]":
    arguments = ["party", ROLES[name], "--config", str(pair.file(name)), "--json"]
    return subprocess.Popen(
        [sys.executable, "-m", "vesper", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "VESPER_LINE_SECONDS": "0.5"},
        start_new_session=True,  # Ctrl-C reaches this process only, which then ends both
    )


def _certify(authority: Authority, name: str, tls: Path, now: datetime) -> None:
    request = make_request(name, [], tls)[2]
    certificate = sign(authority, request, days=90, now=now)
    (tls / f"{name}.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (tls / "authority.pem").write_bytes(authority.certificate.public_bytes(Encoding.PEM))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def _toml(tables: SharedTables) -> str:
    return "\n".join(
        f"[{table}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
        for table, values in tables.items()
    )
