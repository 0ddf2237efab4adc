"""The oracle is right without noise, and at chance behind much of it."""

import numpy as np
import pytest

from vesper.study.class_oracle import OracleSetting, oracle_accuracy


def accuracy(noise_std: float) -> float:
    degrees = np.array([0.0, 0.0, 0.5, 0.0, 0.5])
    return oracle_accuracy(
        OracleSetting(
            class_shares=np.array([0.4, 0.3, 0.2, 0.1]),
            homophily=1.0,
            node_degrees=degrees,
            neighbor_degrees=degrees,
            width=16,
            noise_std=noise_std,
        )
    )


def test_it_is_right_without_noise_and_at_chance_behind_much() -> None:
    assert accuracy(0.05) > 0.999
    assert accuracy(200.0) == pytest.approx(0.4, abs=0.03)
