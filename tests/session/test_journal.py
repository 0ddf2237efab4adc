"""The journal: what it says, what it leaves out, and who is seen to write it."""

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
PROMISE = NoisePlan(
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


def test_a_run_from_its_begin_to_its_end(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    with open_journal(tmp_path, side="data", config=CONFIG, ledger=ledger, source="here") as told:
        told.agreed(PROMISE, {"stages": 2, "epochs": 5, "steps": 10}, metric="roc_auc")
        told.epoch(EpochFacts(stage=0, epoch=1, is_best=True, loss=float("inf"), validation=70.5))
        told.progress("training", 10, 10, "epsilon 1 of 2")
    begun, agreed, epoch, doing, ended = lines(tmp_path)
    assert begun["side"] == "data"
    assert begun["config"]["privacy"]["epsilon"] == 2.0
    assert begun["ledger"] == str(ledger)
    assert begun["resumed"] is False
    assert (agreed["privacy"]["certified_epsilon"], agreed["privacy"]["noise"]) == (2.0, "here")
    assert (agreed["stages"], agreed["steps"], agreed["metric"]) == (2, 10, "roc_auc")
    assert (epoch["stage"], epoch["epoch"], epoch["validation"]) == (0, 1, 70.5)
    assert epoch["loss"] is None, "JSON has no infinity"
    assert (doing["done"], doing["note"]) == (10, "epsilon 1 of 2")
    assert (ended["event"], ended["how"]) == ("ended", "finished")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (InputError("no room"), "no room"),
        (KeyError("x"), "KeyError"),
        (KeyboardInterrupt(), "by its user"),
    ],
)
def test_a_run_that_fails_says_why(tmp_path: Path, error: BaseException, why: str) -> None:
    with pytest.raises(type(error)), open_journal(tmp_path, side="label", config=CONFIG):
        raise error
    assert (lines(tmp_path)[-1]["how"], lines(tmp_path)[-1]["why"]) == ("failed", why)


def test_a_task_is_written_once_a_second_and_at_its_end(tmp_path: Path) -> None:
    clock, heard = ticking(0.25), []

    def shown(task: str, done: int, total: int, note: str = "") -> None:
        heard.append(done)

    with open_journal(
        tmp_path,
        side="both",
        config=CONFIG,
        observer=CallingObserver(progress=shown),
        clock=lambda: next(clock),
    ) as told:
        for step in range(1, 10):
            told.progress("training", step, 9)
    assert heard == list(range(1, 10)), "the screen is told everything"
    written = [line["done"] for line in lines(tmp_path) if line["event"] == "doing"]
    assert (written[0], written[-1]) == (1, 9)
    assert 3 <= len(written) < 9


def test_what_was_killed_in_a_line_does_not_spoil_the_next(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text('{"event": "begun"}\n{"event": "ep')
    with open_journal(tmp_path, side="data", config=CONFIG, resumed=True):
        pass
    texts = (tmp_path / JOURNAL).read_text().splitlines()
    assert texts[1] == '{"event": "ep'
    assert [json.loads(text)["event"] for text in texts[2:]] == ["begun", "ended"]


def test_who_writes_it_is_seen(tmp_path: Path) -> None:
    with open_journal(tmp_path, side="data", config=CONFIG):
        assert is_being_written(tmp_path / JOURNAL)
    assert not is_being_written(tmp_path / JOURNAL)


def test_a_line_that_cannot_be_written_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "read only"
    path.touch()
    file = os.open(path, os.O_RDONLY)
    journal = Journal(file, source="", observer=NO_OBSERVER, clock=lambda: 0.0)
    journal.write("doing", task="training")
    os.close(file)
    assert path.read_bytes() == b""
