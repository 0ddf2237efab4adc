"""Reading a journal: the newest start, resumed runs, torn lines, other versions."""

import json
from pathlib import Path

import pytest

from vesper.errors import InputError
from vesper.session.config import load_config
from vesper.session.journal import JOURNAL, TaskProgress, open_journal, read_journal
from vesper.session.observer import EpochFacts

CONFIG = load_config(None, {"epsilon": 2.0})


def epoch(stage: int, number: int, validation: float) -> EpochFacts:
    return EpochFacts(
        stage=stage, epoch=number, is_best=False, loss=1.0 / (number + 1), validation=validation
    )


def fail_after(folder: Path, *epochs: EpochFacts) -> None:
    with open_journal(folder, side="label", config=CONFIG, clock=lambda: 5.0) as journal:
        for facts in epochs:
            journal.epoch(facts)
        raise InputError("lost")


def test_without_a_journal_there_is_no_run(tmp_path: Path) -> None:
    assert read_journal(tmp_path) is None
    (tmp_path / JOURNAL).write_text('{"at": 1.0, "event": "doing"}\nno json\n')
    assert read_journal(tmp_path) is None


def test_a_run_that_is_being_written(tmp_path: Path) -> None:
    with open_journal(tmp_path, side="label", config=CONFIG) as journal:
        journal.progress("training", 3, 9, "loss 0.5")
        journal.epoch(epoch(0, 0, 61.0))
        read = read_journal(tmp_path)
    assert read is not None
    assert read.is_being_written
    assert read.outcome is None
    assert read.side == "label"
    assert read.config == CONFIG
    assert read.ledger is None
    assert read.task_progress == TaskProgress(task="training", done=3, total=9, note="loss 0.5")
    assert read.epochs == (epoch(0, 0, 61.0),)


def test_an_epoch_that_is_trained_again_counts_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="lost"):
        fail_after(tmp_path, epoch(0, 0, 61.0), epoch(0, 1, 62.0))
    failed = read_journal(tmp_path)
    assert failed is not None
    assert (failed.outcome, failed.reason, failed.is_being_written) == ("failed", "lost", False)
    with open_journal(
        tmp_path, side="label", config=CONFIG, resumed=True, clock=lambda: 9.0
    ) as journal:
        journal.epoch(epoch(0, 1, 63.0))
        journal.epoch(epoch(1, 0, 64.0))
    read = read_journal(tmp_path)
    assert read is not None
    assert (read.outcome, read.started_at, read.last_line_at) == ("finished", 5.0, 9.0)
    assert [facts.validation for facts in read.epochs] == [61.0, 63.0, 64.0]


def test_a_new_run_replaces_the_one_before(tmp_path: Path) -> None:
    for validation in (61.0, 71.0):
        with open_journal(tmp_path, side="label", config=CONFIG) as journal:
            journal.epoch(epoch(0, 0, validation))
    read = read_journal(tmp_path)
    assert read is not None
    assert [facts.validation for facts in read.epochs] == [71.0]


def test_a_journal_of_another_version_is_refused(tmp_path: Path) -> None:
    line = {"at": 1.0, "event": "started", "side": "data", "config": {"run": {"warp": 9}}}
    (tmp_path / JOURNAL).write_text(json.dumps(line | {"ledger": None}) + "\n")
    with pytest.raises(InputError, match=r"progress.jsonl: expected a journal of this version"):
        read_journal(tmp_path)
    (tmp_path / JOURNAL).write_bytes(b"\xff\xfe\n")
    with pytest.raises(InputError, match="cannot be read"):
        read_journal(tmp_path)
