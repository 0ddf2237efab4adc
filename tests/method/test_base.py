import numpy as np
import torch

from vesper.method.base import Fitted


def test_what_is_fitted_once_stays_and_can_be_taken_over() -> None:
    first = Fitted()
    assert first.find("size") is None
    assert first.once("size", lambda: torch.tensor(2.0)) == 2
    assert first.once("size", lambda: torch.tensor(3.0)) == 2
    other = Fitted()
    other.keep_to(first.arrays())
    assert other.once("size", lambda: torch.tensor(3.0)) == 2
    assert other.arrays() == {"size": np.float32(2)}
