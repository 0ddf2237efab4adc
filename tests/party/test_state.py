"""Saved weights are loaded into the same layers, and refused by others."""

import pytest
import torch
from torch import nn

from vesper.errors import InputError
from vesper.party.state import arrays_of, load_weights, weights_of


def saved_weights_of(module: nn.Module) -> dict[str, torch.Tensor]:
    return weights_of(arrays_of(module.state_dict()))


def test_weights_are_restored() -> None:
    trained, fresh = nn.Linear(3, 2), nn.Linear(3, 2)
    load_weights(fresh, saved_weights_of(trained))
    assert torch.equal(fresh.weight, trained.weight)


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        (nn.Linear(4, 2), r"expected 'weight' of shape \(2, 3\), found \(2, 4\)"),
        (nn.Linear(3, 2, bias=False), r"expected 'bias' of shape \(2,\), found none"),
        (nn.Sequential(nn.Linear(3, 2)), r"expected '0.bias' of shape none, found \(2,\)"),
    ],
)
def test_weights_of_other_layers_are_refused(saved: nn.Module, message: str) -> None:
    fresh = nn.Linear(3, 2)
    before = fresh.weight.clone()
    with pytest.raises(InputError, match=message) as refusal:
        load_weights(fresh, saved_weights_of(saved))
    assert "train again" in str(refusal.value)
    assert torch.equal(fresh.weight, before)
