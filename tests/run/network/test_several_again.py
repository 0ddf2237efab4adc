"""A label party with several data parties that begins, fails, and goes on again."""

import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from vesper.errors import InputError, PeerError, PeerLostError, VesperError
from vesper.run.network import own_graph as own_graph_module
from vesper.run.network.data_run import run_data_party
from vesper.run.network.label_run import run_label_table

if TYPE_CHECKING:
    from tests.run.conftest import Several


class Stopped(BaseException):
    """As Ctrl-C."""


def test_one_table_alone(several: "Several") -> None:
    del several.data_files["telecom"]
    several.sit_down()
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(run_data_party, several.data("platform"))
        result = run_label_table(several.table())
        other.result()
    assert [each.name for each in result.parties] == ["platform"]


def test_stopped_while_nobody_had_come(several: "Several") -> None:
    several.sit_down(own="")
    def stop(task: str, done: int, total: int, note: str = "") -> None:
        if task.startswith("waiting"):
            raise Stopped
    with pytest.raises(Stopped):
        run_label_table(several.table(), progress=stop)
    with ThreadPoolExecutor(3) as pool:
        others = [pool.submit(run_data_party, several.data(name)) for name in several.data_files]
        run_label_table(several.table())
        for each in others:
            each.result()


def test_own_folder_missing_is_said_although_nobody_has_come(several: "Several") -> None:
    several.sit_down(own="")
    shutil.rmtree(several.root / "bank" / "transfers")
    several.change('when_lost = "stop"', 'when_lost = "wait"', "bank")
    def stop(task: str, done: int, total: int, note: str = "") -> None:
        if task.startswith("waiting") and done > 8:
            raise Stopped
    with pytest.raises(InputError, match="transfers"):
        run_label_table(several.table(), progress=stop)


def test_own_result_that_cannot_be_written_is_said(several: "Several") -> None:
    several.sit_down(own="")
    table = several.table()
    state = several.label_file.parent / "state" / "own"
    def block(task: str, done: int, total: int, note: str = "") -> None:
        if task == "training" and done == 3:
            (state / "result.partial").write_text("")
            import os
            os.chmod(state, 0o500)
    with ThreadPoolExecutor(3) as pool:
        others = [pool.submit(run_data_party, several.data(name)) for name in several.data_files]
        with pytest.raises(VesperError):
            run_label_table(table, progress=block)
