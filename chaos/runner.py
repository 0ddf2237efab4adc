"""Program that runs `vesper` as forks of itself, with a fault armed: starting afresh takes seconds.

It reads one command per line and replies with one line:

    {"argv": [..], "log": FILE, "fault": {..} | null, "fired": FILE,
     "folder": DIR, "journal": FILE, "full_at": N, "memory": BYTES}     ->  {"pid": N}
    {"call": "module:function", "arguments": {..}, "log": FILE}         ->  {"pid": N}
    {"poll": PID}                                       ->  {"code": N | null, "megabytes": N}

`argv` goes to vesper's own main, as on the command line; output goes to the log. `fired` is written
when the fault happens. `folder` is what the shim watches: changes go to the journal, and from write
`full_at` on its disk is full.
"""

import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import numba
import torch

from chaos.faults import Fault, Injector, arm, has_shim, shim
from chaos.institutions import write_graph, write_labels
from vesper.cli.app import main as vesper
from vesper.session.config import load_config
from vesper.simulation.simulate import simulate

PRELOADED = (
    "vesper.deployment.data_process",
    "vesper.deployment.label_process",
    "vesper.deployment.alignment.align",
    "vesper.deployment.preflight",
    "vesper.serving.embedding_server",
    "vesper.serving.multi_party_predictor",
    "vesper.simulation.simulate",
    "vesper.export.writer",
    "vesper.export.learner",
    "vesper.datasets.prepare.job",
    "vesper.study.study",
)
"""Imported once, before the forks."""


def child(command: dict[str, Any]) -> NoReturn:
    """Do what the command says, and end."""
    os.setpgid(0, 0)  # Ctrl-C goes to a whole group
    log = os.open(command["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(command.get("environment", {}))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    code = 0
    try:
        if "call" in command:
            module, _, name = command["call"].partition(":")
            getattr(importlib.import_module(module), name)(**command["arguments"])
        else:
            _arm(command)
            sys.argv = ["vesper", *command["argv"]]
            vesper()
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 70
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _arm(command: dict[str, Any]) -> None:
    if limit := command.get("memory"):
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    if folder := command.get("folder"):
        assert has_shim(), "expected the shim to be loaded"
        error = shim().chaos_arm(
            folder.encode(), command.get("journal", "").encode(), command.get("full_at", -1)
        )
        assert error == 0, os.strerror(error)
    given, fired = command.get("fault"), Path(command["fired"])
    arm(Injector(Fault(**given) if given else None, fired=fired.touch))


def warm_up() -> None:
    """Load modules and compiled loops before the forks; no thread may be left, nor a connection."""
    for name in PRELOADED:
        importlib.import_module(name)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_graph(root / "data", step=1)
        write_labels(root / "label")
        for method in ("certified", "gap", "paper-gcn", "edgerand", "lapgraph"):
            settings = load_config(None, {"method": method, "epochs": 1, "width": 8})
            simulate(root, settings, root / method)


def main() -> None:
    """Read commands until the input ends."""
    warm_up()
    for line in sys.stdin:
        command = json.loads(line)
        if "poll" in command:
            pid, status, usage = os.wait4(command["poll"], os.WNOHANG)
            code = os.waitstatus_to_exitcode(status) if pid else None
            reply = {"code": code, "megabytes": usage.ru_maxrss >> 10}
        else:
            pid = os.fork()
            if pid == 0:
                child(command)
            with suppress(OSError):
                os.setpgid(pid, pid)  # here too: a signal may come before the child has done so
            reply = {"pid": pid}
        sys.stdout.write(f"{json.dumps(reply)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
