"""The status of a run at every point: not started, running, failed, lost, finished."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from vesper.cli.app import main
from vesper.deployment.config.party_config import load_party_config
from vesper.deployment.data_process import run_data_party
from vesper.deployment.label_process import run_label_party
from vesper.errors import InputError
from vesper.method.base import NoisePlan
from vesper.report.live_run import read_run_status
from vesper.session.config import load_config
from vesper.session.contract import approve
from vesper.session.journal import open_journal
from vesper.session.observer import EpochFacts
from vesper.simulation.simulate import simulate

if TYPE_CHECKING:
    from tests.conftest import Institutions

CONFIG = load_config(None, {"epsilon": 4.0})
NOISE_PLAN = NoisePlan(
    plan="certified",
    certified_epsilon=3.5,
    claimed_epsilon=None,
    delta=1e-6,
    noise_stds=(3.0,),
)
EPOCH = EpochFacts(stage=0, epoch=0, is_best=True, loss=0.6, validation=71.0)


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no such folder"):
        read_run_status(tmp_path / "missing")
    with pytest.raises(InputError, match="found something else"):
        read_run_status(tmp_path)


def test_a_party_that_nobody_has_started(tmp_path: Path) -> None:
    approve(tmp_path, CONFIG)
    assert read_run_status(tmp_path).state == "not started"


def test_a_simulation_is_found_where_it_is_written(tmp_path: Path) -> None:
    partial = tmp_path / ".run.partial-abcd"
    partial.mkdir()
    with open_journal(partial, side="both", config=CONFIG) as journal:
        assert read_run_status(tmp_path / "run").state == "running"
        journal.agreed(NOISE_PLAN, {"stages": 1, "epochs": 2, "steps": 2}, metric="roc_auc")
        journal.epoch(EPOCH)
        status = read_run_status(tmp_path / "run")
    assert status.journal is not None
    assert status.journal.epochs == (EPOCH,)
    assert status.privacy is not None
    assert status.privacy.epsilon == 4.0, "counts made before are part of the budget"
    assert not status.privacy.is_private, "noise of a simulation comes from a seed"
    assert status.run_charges is None
    assert read_run_status(tmp_path / "run").state == "running", "it is moved into place next"


def test_a_run_that_failed_and_one_that_was_killed(tmp_path: Path) -> None:
    with pytest.raises(InputError), open_journal(tmp_path, side="label", config=CONFIG):
        raise InputError("the peer is gone")
    status = read_run_status(tmp_path)
    assert status.state == "failed"
    assert status.journal is not None
    assert status.journal.reason == "the peer is gone"
    path = tmp_path / "progress.jsonl"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    assert read_run_status(tmp_path).state == "lost"


def test_a_simulation_that_is_finished(tmp_path: Path, write_folders: Callable[..., Path]) -> None:
    ids = np.arange(60)  # features differ: equal scores may differ in their last bits
    splits = ["train"] * 30 + ["val"] * 15 + ["test"] * 15
    folders = write_folders(
        tmp_path / "folders",
        nodes={"id": ids, "x": np.sin(ids)},
        edges={"src": ids, "dst": (ids + 2) % 60},
        labels={"id": ids, "label": ids % 2, "split": splits},
    )
    simulate(folders, load_config(None, {"epochs": 2}), tmp_path / "run")
    status = read_run_status(tmp_path / "run")
    assert status.state == "finished"
    assert status.contents is not None
    stages = {facts.stage for facts in status.contents.epochs}
    assert stages == set(range(len(status.contents.stages)))
    for stage in stages:
        best = max(f.validation or 0 for f in status.contents.epochs if f.stage == stage)
        assert best == status.contents.stages[stage]["validation"]
    assert status.run_charges is not None
    assert len(status.run_charges.charges) == status.contents.privacy.releases


def test_both_parties_after_a_run(
    institutions: "Institutions", monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = str(load_party_config(institutions.settings[0]).party.ledger)
    counts = ["degrees", str(institutions.data), "--epsilon", "0.5", "--graph", "payments"]
    monkeypatch.setattr(sys, "argv", ["vesper", *counts, "--ledger", ledger])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    institutions.change("\n[run]\n", "\n[run]\nepochs = 2\n")
    data, label = (load_party_config(path) for path in institutions.settings)
    for config in (data, label):
        approve(config.party.state, config.shared)
    with ThreadPoolExecutor(max_workers=1) as pool:
        other = pool.submit(run_data_party, data)
        run_label_party(label)
        other.result()
    ours, theirs = read_run_status(data.party.state), read_run_status(label.party.state)
    assert (ours.state, theirs.state) == ("finished", "finished")
    assert ours.journal is not None
    assert theirs.journal is not None
    assert all(facts.loss is None and facts.validation is None for facts in ours.journal.epochs)
    assert len(ours.journal.epochs) == len(theirs.journal.epochs) > 0
    assert ours.contents is None
    assert ours.run_charges is not None
    assert ours.privacy is not None
    assert ours.privacy.is_private
    noise = f"noise std {ours.privacy.noise_stds[-1]:.4g}"
    assert noise in ours.run_charges.charges[-1].what, "noise is planned for what counts have left"
    assert ours.privacy.epsilon == 4.0
    assert theirs.contents is not None
    assert theirs.run_charges is None, "the label party has no ledger of edges"
    lines = (label.party.state / "progress.jsonl").read_text()
    assert str(data.party.ledger) not in lines
    assert (label.party.state / "progress.jsonl").stat().st_size < 1 << 16
