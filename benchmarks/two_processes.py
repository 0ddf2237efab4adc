"""Both parties of a run as two processes, with time and memory of each.

    run_parties(folder, place, epsilon=4.0, run={"epochs": 1})
        ->  {"data": ProcessCost, "label": ProcessCost}

Commands are those of docs/two-parties.md, over TLS on the loopback interface. The operating system
reports the cost of each process when it ends.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

NAMES = {"data": "platform", "label": "bank"}
PAUSE = 0.05
OTHER = {"data": "label", "label": "data"}


@dataclass(frozen=True)
class ProcessCost:
    """Cost of a process from start to end."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


def vesper(*words: str | Path, cwd: Path) -> None:
    """Run a command to its end; an error shows its standard error."""
    command = [sys.executable, "-m", "vesper", *map(str, words)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"vesper {' '.join(map(str, words))}: {done.stderr.strip()}")


def set_up(folder: Path, place: Path, *, epsilon: float, run: Mapping[str, int]) -> None:
    """Set up two institutions in `place`: folders, certificates, settings, contract."""
    place.mkdir(parents=True)
    vesper("cert", "init", "--out", "authority", cwd=place)
    address = f"127.0.0.1:{_free_port()}"
    for role, name in NAMES.items():
        own = place / role
        own.mkdir()
        (own / role).symlink_to((folder / role).resolve(), target_is_directory=True)
        vesper("cert", "request", "--name", name, "--out", "tls", cwd=own)
        request, signed = own / "tls" / f"{name}.csr", own / "tls" / f"{name}.pem"
        options = ("--authority", "authority", "--request", request, "--out", signed)
        vesper("cert", "approve", *options, cwd=place)
        authority = (place / "authority" / "authority.pem").read_bytes()
        (own / "tls" / "authority.pem").write_bytes(authority)
        text = _settings(role, address, epsilon=epsilon, run=run)
        (own / "party.toml").write_text(text)
        vesper("contract", "--config", "party.toml", "--approve", cwd=own)


def run_parties(
    folder: Path, place: Path, *, epsilon: float, run: Mapping[str, int]
) -> dict[str, ProcessCost]:
    """Train between two processes; return the cost of each, by role.

    Args:
        folder: folder with `data/` and `label/`.
        place: a new folder for both institutions.
        epsilon: certified epsilon.
        run: settings of the run that differ from the defaults.
    """
    set_up(folder, place, epsilon=epsilon, run=run)
    started = time.perf_counter()
    running = {role: _start(role, place / role) for role in NAMES}
    costs: dict[str, ProcessCost] = {}
    try:
        while len(costs) < len(running):
            time.sleep(PAUSE)
            for role in running.keys() - costs.keys():
                pid, status, usage = os.wait4(running[role].pid, os.WNOHANG)
                if not pid:
                    continue
                code = running[role].returncode = os.waitstatus_to_exitcode(status)
                if code:
                    log = (place / role / "stderr.log").read_text()[-500:]
                    raise SystemExit(f"vesper party {role}: ended with {code}: {log}")
                costs[role] = ProcessCost(
                    seconds=time.perf_counter() - started,
                    cpu_seconds=usage.ru_utime + usage.ru_stime,
                    peak_bytes=usage.ru_maxrss * 1024,
                )
    finally:
        for process in running.values():
            if process.poll() is None:
                process.kill()
                process.wait()
    return costs


def _start(role: str, own: Path) -> "subprocess.Popen[bytes]":
    with (own / "stderr.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "vesper", "party", role, "--config", "party.toml"],
            cwd=own,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )


def _settings(role: str, address: str, *, epsilon: float, run: Mapping[str, int]) -> str:
    name, peer = NAMES[role], NAMES[OTHER[role]]
    direction = "listen" if role == "data" else "connect"
    ledger = 'ledger = "ledger.sqlite"\ngraph = "bench"\n' if role == "data" else ""
    chosen = "".join(f"{key} = {value}\n" for key, value in run.items())
    return (
        f'[party]\nrole = "{role}"\nname = "{name}"\npeer = "{peer}"\nfolder = "{role}"\n'
        f'state = "state"\n{ledger}{direction} = "{address}"\n'
        f'[tls]\ncertificate = "tls/{name}.pem"\nkey = "tls/{name}.key"\n'
        f'authority = "tls/authority.pem"\n'
        f'[privacy]\nepsilon = {epsilon}\n[run]\nmethod = "vesper"\n{chosen}'
    )


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port
