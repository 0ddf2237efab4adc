"""The page of the board for every state of a run."""

from collections.abc import Callable
from typing import Any

import pytest

from vesper.report.board_page import board_main, board_page
from vesper.report.budget_section import RunCharges
from vesper.report.contents import Contents
from vesper.report.live_run import RunState, RunStatus
from vesper.session.config import load_config
from vesper.session.journal import JournalSummary, TaskProgress
from vesper.session.observer import EpochFacts

CONFIG = load_config(None, {})


def journal(**changes: Any) -> JournalSummary:
    fields: dict[str, Any] = {
        "side": "label",
        "config": CONFIG,
        "ledger": None,
        "run": "",
        "started_at": 0.0,
        "last_line_at": 60.0,
        "planned": {"stages": 3, "epochs": 60, "metric": "roc_auc"},
        "task_progress": TaskProgress(task="training", done=5, total=90, note="loss 0.6  <b>"),
        "epochs": (EpochFacts(stage=1, epoch=6, is_best=True, loss=0.625, validation=71.25),),
        "outcome": None,
        "reason": "",
        "is_being_written": True,
    }
    return JournalSummary(**{**fields, **changes})


def test_a_running_run() -> None:
    main = board_main(RunStatus(state="running", journal=journal(), config=CONFIG))
    for words in (
        "label party; started 1970-01-01 00:00:00 UTC",
        "Running.",
        '<progress value="5" max="90">',
        "5 of 90; loss 0.6, &lt;b&gt;",
        "<b>71.2 %</b><span>ROC AUC, validation, best so far</span>",
        "<b>7</b><span>epoch, of at most 60</span>",
        "<b>1</b><span>stage, of 0 to 2</span>",
        "<b>0.625</b><span>loss</span>",
        "ROC AUC on validation nodes",
    ):
        assert words in main
    assert "Privacy</h2>" not in main, "nothing is guaranteed before both sides have agreed"


def test_the_data_party_sees_charges_and_no_curves() -> None:
    epochs = (EpochFacts(stage=0, epoch=0, is_best=True),)
    run_charges = RunCharges(
        charges=(),
        spent_epsilon=1.0,
        planned_epsilon=4.0,
        best_guess=0.6,
    )
    main = board_main(
        RunStatus(
            state="running",
            journal=journal(side="data", epochs=epochs),
            config=CONFIG,
            run_charges=run_charges,
        )
    )
    assert "epsilon 1 of 4 is spent" in main
    assert "<polyline" not in main
    assert "loss</span>" not in main


@pytest.mark.parametrize(
    ("state", "changes", "words"),
    [
        (
            "failed",
            {"reason": "no space <here>"},
            "Stopped: no space &lt;here&gt;. To resume: vesper",
        ),
        ("lost", {}, "The process is gone: it was killed"),
        ("lost", {}, "Last update: 1970-01-01 00:01:00 UTC"),
        ("lost", {"side": "data"}, "vesper party data --config FILE --resume"),
        ("finished", {}, "Finished. 1970-01-01 00:01:00 UTC"),
    ],
)
def test_a_run_that_has_ended(state: RunState, changes: dict[str, Any], words: str) -> None:
    status = RunStatus(state=state, journal=journal(**changes), config=CONFIG)
    assert words in board_main(status)


def test_a_simulation_cannot_be_resumed() -> None:
    assert "--resume" not in board_main(
        RunStatus(state="lost", journal=journal(side="both"), config=CONFIG)
    )


def test_before_and_after(contents: Callable[..., Contents]) -> None:
    assert "has not been started" in board_main(RunStatus(state="not started"))
    main = board_main(RunStatus(state="finished", contents=contents()))
    assert "Finished." in main
    assert "Model report" in main


def test_the_page_loads_nothing_from_elsewhere(contents: Callable[..., Contents]) -> None:
    page = board_page(board_main(RunStatus(state="finished", contents=contents())))
    assert "http:" not in page
    assert "https:" not in page
    assert page.count("<script>") == 1
