import numpy as np
import torch

from vesper.method.base import FittedConstants


def test_what_is_fitted_once_stays_and_can_be_taken_over() -> None:
    first = FittedConstants()
    assert first.get("size") is None
    assert first.fit_once("size", lambda: torch.tensor(2.0)) == 2
    assert first.fit_once("size", lambda: torch.tensor(3.0)) == 2
    other = FittedConstants()
    other.load_fitted(first.arrays())
    assert other.fit_once("size", lambda: torch.tensor(3.0)) == 2
    assert other.arrays() == {"size": np.float32(2)}
