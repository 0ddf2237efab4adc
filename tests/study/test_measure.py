"""Measures equal the commands that they stand for."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vesper.session.config import load_config
from vesper.simulation.simulate import simulate
from vesper.study.measure import MEASURES


@pytest.fixture
def parties(tmp_path: Path, write_folders: Callable[..., Path]) -> Path:
    rng = np.random.default_rng(0)
    return write_folders(
        tmp_path / "parties",
        nodes={"id": range(60), "f": rng.normal(size=60)},
        edges={"src": range(60), "dst": [(k + 2) % 60 for k in range(60)]},
        labels={
            "id": range(60),
            "label": [k % 2 for k in range(60)],
            "split": [("train", "val", "test")[k // 2 % 3] for k in range(60)],
        },
    )


def test_training_equals_simulate(parties: Path, tmp_path: Path) -> None:
    config = load_config(None, {"epochs": 1, "width": 8})
    measured = MEASURES["training"](config, parties, tmp_path / "a")
    assert measured.test == simulate(parties, config, tmp_path / "b").test
    assert measured.plan == "certified"


@pytest.mark.parametrize(
    ("measure", "plan"), [("degrees", "certified"), ("degrees-as-paper", "paper")]
)
def test_degrees_are_released(measure: str, plan: str, parties: Path, tmp_path: Path) -> None:
    config = load_config(None, {"epsilon": 50.0, "seed": 3})
    measured = MEASURES[measure](config, parties, tmp_path / "a")
    assert measured.plan == plan
    histogram = measured.histogram or ()
    assert (len(histogram), round(histogram[2])) == (51, 60)  # a ring, with hardly any noise
    assert MEASURES[measure](config, parties, tmp_path / "b") == measured
