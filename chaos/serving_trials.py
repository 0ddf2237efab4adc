"""A snapshot that is answered and queried, with faults at the server or at the client."""

import shutil
from signal import SIGINT, SIGKILL

import pyarrow as pa
import pyarrow.parquet as pq

from chaos.faults import Action
from chaos.institutions import write_graph
from chaos.lab import Arguments, Member, Run, TrialPlace, check
from chaos.party_trials import finished_run
from chaos.processes import Processes
from chaos.trial import FailedError, draw_fault

ACTIONS: tuple[Action, ...] = ("kill", "kill", "kill", "power", "full", "clock")
NODES = 40


def run_serving(processes: Processes, place: TrialPlace) -> None:
    """Serve a snapshot, query all its nodes, stop the server, and check what was charged."""
    shutil.copytree(finished_run(processes, place), place.folder)
    root, log = place.folder, place.folder / "check.log"
    bank, platform = root / "bank" / "bank.toml", root / "platform" / "platform.toml"
    check(processes, "choose_last_stage", log, folder=str(root / "bank" / "state" / "result"))
    snapshot = root / "platform" / "snapshot"
    write_graph(snapshot, step=5, nodes=NODES)
    pq.write_table(pa.table({"id": range(NODES)}), root / "ids.parquet")

    def serve() -> Arguments:
        return [
            *("party", "data", "--config", platform, "--answer", "--snapshot", snapshot),
            *("--graph", "platform-later"),
        ]

    def predict() -> Arguments:
        out = root / "bank" / "predictions.parquet"
        return ["predict", "--config", bank, "--ids", root / "ids.parquet", "--out", out]

    members = [
        Member("platform", serve, root / "platform"),
        Member("bank", predict, root / "bank"),
    ]
    victim = place.chance.choice(members)
    count = place.chance.choice((1, 1, 2, 3))
    if place.chance.random() < 0.2:
        victim.kill_after = [place.chance.uniform(0.1, 2) for _ in range(count)]
    else:
        victim.faults = [draw_fault(place.chance, ACTIONS) for _ in range(count)]
    run = Run(processes, members, place.report, place.chance)
    run.until_finished(except_for="platform")
    processes.signal(run.process("platform"), SIGKILL)  # it may just have been started again
    processes.wait(run.process("platform"), limit=30)
    _serve_and_stop(processes, serve(), run)
    run.refuse_tracebacks()
    check(
        processes,
        "check_answers",
        log,
        data=str(platform),
        label=str(bank),
        snapshot=str(snapshot),
        graph="platform-later",
    )


def _serve_and_stop(processes: Processes, arguments: Arguments, run: Run) -> None:
    """Serve once more and stop with Ctrl-C: whatever was reserved is returned."""
    ready, log = "stop with Ctrl-C", run.logs["platform"]
    before = log.read_text().count(ready)
    server = processes.start(arguments, log)
    while server.output.count(ready) == before:
        if processes.wait(server, limit=0.1) is not None:
            raise FailedError(f"the server ended with {server.code}\n{run.outputs()}")
    processes.signal(server, SIGINT)
    if processes.wait(server, limit=30) != 0:
        raise FailedError(f"the server ended with {server.code}\n{run.outputs()}")
