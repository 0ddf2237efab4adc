"""A program that starts parties as forks of itself: hundreds of crashes need hundreds of starts.

    {"start": WHAT, "config": FILE, "largest_file": N, ..}          ->   {"pid": N}
    {"poll": PID}                                                  ->   {"code": N | null}

    WHAT = "data" | "label" | "table", with "resume"     "answer", with "snapshot"
           "predict", with "ids"                         "serve", with "port"

A table is the label party of several data parties.

Each child writes what it has to say to CONFIG.log.
"""

import json
import os
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

import numba
import torch

from vesper.errors import PeerLostError, VesperError
from vesper.run.network.data_run import run_data_party
from vesper.run.network.finished import is_finished, stay_for_peer
from vesper.run.network.kept_pairs import there_still
from vesper.run.network.label_run import run_label_table
from vesper.run.network.own_graph import finish_own
from vesper.run.serving.conversation import answer_queries
from vesper.run.serving.http_server import ServingServer
from vesper.run.serving.predictor import opened
from vesper.run.serving.service import Service
from vesper.run.setup.label_table import LabelTable, load_table, table_of
from vesper.run.setup.party_config import PartyConfig, load_party_config

AT_ONCE = 5
"""Ids in one question: there are some to be killed between."""


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def predict(config: PartyConfig, ids: list[str]) -> None:
    with opened(config, config) as predictor:
        for start in range(0, len(ids), AT_ONCE):
            found = predictor.predict(ids[start : start + AT_ONCE], limit=None)
            if found.away is not None:
                raise PeerLostError(found.away)


def serve(config: PartyConfig, port: int) -> None:
    with opened(config, config) as predictor:
        service = Service(predictor, peer="platform", failed=traceback.print_exception)
        with ServingServer("127.0.0.1", port, service, said=say) as server:
            server.serve_forever()


def bank(table: LabelTable, *, resume: bool) -> None:
    """As `vesper party label` does."""
    if resume and is_finished(table.own):
        finish_own(table)
        for pair in there_still(table):
            stay_for_peer(pair, lost=say)
    else:
        run_label_table(table, resume=resume, lost=say)


def work(asked: dict[str, Any]) -> None:
    if asked["start"] == "table":
        bank(load_table(Path(asked["config"])), resume=asked["resume"])
        return
    config = load_party_config(Path(asked["config"]))
    match asked["start"]:
        case "data" | "label" if asked["resume"] and is_finished(config):
            stay_for_peer(config, lost=say)
        case "data":
            run_data_party(config, resume=asked["resume"], lost=say)
        case "label":
            run_label_table(table_of(config), resume=asked["resume"], lost=say)
        case "answer":
            answer_queries(config, snapshot=Path(asked["snapshot"]), said=say)
        case "predict":
            predict(config, asked["ids"])
        case "serve":
            serve(config, asked["port"])


def child(asked: dict[str, Any]) -> NoReturn:
    if largest_file := asked.get("largest_file"):  # writing more fails, as on a disk that is full
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    log = os.open(f"{asked['config']}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    try:
        work(asked)
        code = 0
    except VesperError as error:
        say(str(error))
        code = error.exit_code
    except BaseException:
        traceback.print_exc()
        code = 70
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "start" in asked:
            pid = os.fork()
            if pid == 0:
                child(asked)
            answer: dict[str, int | None] = {"pid": pid}
        else:
            pid, status = os.waitpid(asked["poll"], os.WNOHANG)
            answer = {"code": os.waitstatus_to_exitcode(status) if pid else None}
        say(json.dumps(answer))


if __name__ == "__main__":
    main()
