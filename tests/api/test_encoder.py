"""Encoders of one's own."""

from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn

from vesper import InputError, Vesper
from vesper.api.encoder import checked, with_encoder
from vesper.method.registry import find_method

if TYPE_CHECKING:
    from tests.api.conftest import Communities


def wide(num_inputs: int, width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(num_inputs, 2 * width), nn.Tanh(), nn.Linear(2 * width, width))


def test_any_module_can_encode(communities: "Communities") -> None:
    made: list[nn.Module] = []

    def make(num_inputs: int, width: int) -> nn.Module:
        made.append(wide(num_inputs, width))
        return made[-1]

    model = communities.fit(method="mlp", seed=0, encoder=make, settings={"epochs": 2})
    assert len(made) == 1
    before = model.predict_proba([0, 1])
    assert before[0].tolist() != before[1].tolist()
    with torch.no_grad():
        for weight in made[0].parameters():
            weight.zero_()
    after = model.predict_proba([0, 1])
    assert after[0].tolist() == after[1].tolist(), "it is this module that predictions use"


def test_encoders_by_name_reach_the_settings(communities: "Communities") -> None:
    with pytest.raises(InputError, match="steps: expected a divisor of the 4 features"):
        communities.fit(method="mlp", encoder="gru", settings={"steps": 3})
    with pytest.raises(InputError, match=r"setting 'run.encoder'"):
        communities.fit(encoder="lstm")


def test_wrong_encoders_are_refused() -> None:
    with pytest.raises(InputError, match=r"shape \(B, 8\), got \(5,\) a node"):
        checked(nn.Linear(3, 5), num_inputs=3, width=8)
    with pytest.raises(InputError, match="that gives a torch module, it gave int"):
        checked(3, num_inputs=3, width=8)
    with pytest.raises(InputError, match="expected method 'vesper' or 'mlp'"):
        with_encoder(find_method("gap"), wide)
    assert with_encoder(find_method("mlp"), wide).name == "mlp"
    assert repr(Vesper(encoder="gru")) == "Vesper(encoder='gru')"
