"""The journal: what it contains, what it leaves out, and whether it is being written."""

import json
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.observers import CallingObserver

from vesper.errors import InputError
from vesper.method.base import NoisePlan
from vesper.session.config import load_config
from vesper.session.journal import JOURNAL, Journal, is_being_written, open_journal
from vesper.session.observer import NO_OBSERVER, EpochFacts

CONFIG = load_config(None, {"epsilon": 2.0})
NOISE_PLAN = NoisePlan(
    plan="certified",
    certified_epsilon=2.0,
    claimed_epsilon=None,
    delta=1e-6,
    noise_stds=(3.0,),
)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / JOURNAL).read_text().splitlines()]


def ticking(step: float) -> Iterator[float]:
    return (100.0 + step * k for k in count())


def test_a_run_from_start_to_end(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    with open_journal(
        tmp_path, side="data", config=CONFIG, ledger=ledger, source="here"
    ) as journal:
        journal.agreed(NOISE_PLAN, {"stages": 2, "epochs": 5, "steps": 10}, metric="roc_auc")
        journal.epoch(
            EpochFacts(stage=0, epoch=1, is_best=True, loss=float("inf"), validation=70.5)
        )
        journal.progress("training", 10, 10, "epsilon 1 of 2")
    start, agreed, epoch, doing, ended = lines(tmp_path)
    assert start["side"] == "data"
    assert start["config"]["privacy"]["epsilon"] == 2.0
    assert start["ledger"] == str(ledger)
    assert start["resumed"] is False
    assert (agreed["privacy"]["certified_epsilon"], agreed["privacy"]["noise"]) == (2.0, "here")
    assert (agreed["stages"], agreed["steps"], agreed["metric"]) == (2, 10, "roc_auc")
    assert (epoch["stage"], epoch["epoch"], epoch["validation"]) == (0, 1, 70.5)
    assert epoch["loss"] is None, "JSON has no infinity"
    assert (doing["done"], doing["note"]) == (10, "epsilon 1 of 2")
    assert (ended["event"], ended["how"]) == ("ended", "finished")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (InputError("no space"), "no space"),
        (KeyError("x"), "KeyError"),
        (KeyboardInterrupt(), "by its user"),
    ],
)
def test_a_failed_run_records_why(tmp_path: Path, error: BaseException, why: str) -> None:
    with pytest.raises(type(error)), open_journal(tmp_path, side="label", config=CONFIG):
        raise error
    assert (lines(tmp_path)[-1]["how"], lines(tmp_path)[-1]["why"]) == ("failed", why)


def test_a_task_is_written_once_a_second_and_at_its_end(tmp_path: Path) -> None:
    clock, reported = ticking(0.25), []

    def report(task: str, done: int, total: int, note: str = "") -> None:
        reported.append(done)

    with open_journal(
        tmp_path,
        side="both",
        config=CONFIG,
        observer=CallingObserver(progress=report),
        clock=lambda: next(clock),
    ) as journal:
        for step in range(1, 10):
            journal.progress("training", step, 9)
    assert reported == list(range(1, 10)), "the observer gets every report"
    written = [line["done"] for line in lines(tmp_path) if line["event"] == "doing"]
    assert (written[0], written[-1]) == (1, 9)
    assert 3 <= len(written) < 9


def test_an_unfinished_line_does_not_spoil_the_next(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text('{"event": "started"}\n{"event": "ep')
    with open_journal(tmp_path, side="data", config=CONFIG, resumed=True):
        pass
    texts = (tmp_path / JOURNAL).read_text().splitlines()
    assert texts[1] == '{"event": "ep'
    assert [json.loads(text)["event"] for text in texts[2:]] == ["started", "ended"]


def test_a_reader_sees_whether_it_is_being_written(tmp_path: Path) -> None:
    with open_journal(tmp_path, side="data", config=CONFIG):
        assert is_being_written(tmp_path / JOURNAL)
    assert not is_being_written(tmp_path / JOURNAL)


def test_a_line_that_cannot_be_written_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "read only"
    path.touch()
    file = os.open(path, os.O_RDONLY)
    journal = Journal(file, source="", observer=NO_OBSERVER, clock=lambda: 0.0)
    journal.write("doing", task="training")
    os.close(file)
    assert path.read_bytes() == b""
