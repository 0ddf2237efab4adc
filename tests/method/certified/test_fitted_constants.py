"""Fitted constants are restored from their arrays unchanged."""

import numpy as np
import pytest
import torch

from vesper.errors import VesperError
from vesper.method.certified.fitted_constants import FittedConstants


def test_nothing_is_stored_before_it_is_fitted() -> None:
    assert FittedConstants().arrays() == {}


def test_values_of_every_kind_are_restored() -> None:
    first = FittedConstants(
        use_labels=False, degree_share=0.45, components=torch.eye(3), relay_size=2.5
    )
    first.centres["1"] = torch.tensor([0.25, 0.75])
    first.median_degrees["2"] = torch.tensor(4.0)
    second = FittedConstants(relay=True, column_scales={"hop0": torch.ones(2)})
    second.load(first.arrays())
    assert (second.use_labels, second.degree_share, second.relay_size) == (False, 0.45, 2.5)
    assert second.relay is None
    assert second.column_scales == {}
    assert second.components is not None
    assert torch.equal(second.components, torch.eye(3))
    assert torch.equal(second.centres["1"], torch.tensor([0.25, 0.75]))
    assert torch.equal(second.median_degrees["2"], torch.tensor(4.0))
    assert second.arrays().keys() == first.arrays().keys()


def test_a_constant_of_another_version_is_refused() -> None:
    with pytest.raises(VesperError, match="found 'colour', which another version has stored"):
        FittedConstants().load({"colour": np.zeros(3)})
