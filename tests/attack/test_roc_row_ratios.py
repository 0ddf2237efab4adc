"""Likelihood ratios from rows against those of a run in two worlds."""

from dataclasses import replace

import numpy as np
import pytest

from vesper.attack.roc import RowRatios
from vesper.audit.small_graphs import ring
from vesper.audit.trial import observe
from vesper.mechanism.door import OpenDoor
from vesper.session.config import load_config
from vesper.session.run_spec import run_spec_for
from vesper.simulation.in_process import train
from vesper.simulation.recording import RowRecordingMethod

CONFIG = load_config(
    None,
    {
        "method": "paper-gin",
        "epsilon": 8.0,
        "epochs": 2,
        "width": 4,
        "batch_size": 50,
        "hops": 1,
        "dropout": 0.0,
        "learning_rate": 1e-6,  # so that both worlds have nearly the same weights
        "spectral_norm": "exact",
    },
)


@pytest.mark.parametrize("is_present", [True, False])
def test_ratios_agree_where_weights_hardly_change(is_present: bool) -> None:
    canaries = ring(split="train", count=3)
    coins = np.full(3, is_present)
    data = canaries.holdings(coins)
    run_spec = run_spec_for(CONFIG, data, canaries.labels)
    rows = RowRatios(data, np.concatenate(canaries.edges), is_gin=True)
    method = RowRecordingMethod(run_spec.method, noise_seed=4, row_observer=rows)
    train(replace(run_spec, method=method), data, canaries.labels, OpenDoor(data.graph))
    exact = observe(canaries, CONFIG, coins, kind="two worlds", noise_seed=4).scores
    assert exact is not None
    assert rows.times > 0
    assert rows.ratios == pytest.approx(exact, rel=0.01, abs=0.01)


def test_rows_of_other_networks_are_ignored() -> None:
    canaries = ring(split="train", count=1)
    run_spec = run_spec_for(CONFIG, canaries.data, canaries.labels)
    rows = RowRatios(canaries.data, np.concatenate(canaries.edges), is_gin=False)
    method = RowRecordingMethod(run_spec.method, row_observer=rows)
    door = OpenDoor(canaries.data.graph)
    train(replace(run_spec, method=method), canaries.data, canaries.labels, door)
    assert rows.times == 0
