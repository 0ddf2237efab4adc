"""A program that starts parties as forks of itself: hundreds of crashes need hundreds of starts.

    {"start": "data" | "label", "config": FILE, "resume": bool, "largest_file": N}   ->   {"pid": N}
    {"poll": PID}                                                  ->   {"code": N | null}

Each child writes what it has to say to CONFIG.log.
"""

import json
import os
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import NoReturn

import numba
import torch

from vesper.errors import VesperError
from vesper.run.network.party_run import run_data_party, run_label_party
from vesper.run.setup.party_config import load_party_config


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def child(role: str, config: str, *, resume: bool, largest_file: int) -> NoReturn:
    if largest_file:  # writing more fails, as on a disk that is full
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    log = os.open(f"{config}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    run = run_data_party if role == "data" else run_label_party
    try:
        run(load_party_config(Path(config)), resume=resume, lost=say)
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
                child(
                    asked["start"],
                    asked["config"],
                    resume=asked["resume"],
                    largest_file=asked.get("largest_file", 0),
                )
            answer: dict[str, int | None] = {"pid": pid}
        else:
            pid, status = os.waitpid(asked["poll"], os.WNOHANG)
            answer = {"code": os.waitstatus_to_exitcode(status) if pid else None}
        say(json.dumps(answer))


if __name__ == "__main__":
    main()
