"""Workers of a study never receive Ctrl-C; their parent ends them."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

from vesper.study.worker import Job, Worker


def test_ctrl_c_while_a_worker_loads_its_libraries_does_not_reach_it(
    job: Callable[[str, int], Job], tmp_path: Path
) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    worker = Worker()
    try:
        assert worker.process_id is not None
        os.kill(worker.process_id, signal.SIGINT)
        worker.assign(job("quick", 0), tmp_path / "cell")
        assert worker.receive_result().is_measured
    finally:
        worker.terminate()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
