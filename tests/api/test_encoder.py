"""Encoders of one's own."""

from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn

from vesper import InputError, Vesper
from vesper.api.encoder import MakeEncoder, build_encoder, with_encoder
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
    assert len(made) == 4, "one for each network"
    before = model.predict_proba([0, 1])
    assert before[0].tolist() != before[1].tolist()
    with torch.no_grad():
        for weight in (weight for module in made for weight in module.parameters()):
            weight.zero_()
    after = model.predict_proba([0, 1])
    assert after[0].tolist() == after[1].tolist(), "it is this module that predictions use"


def test_encoders_by_name_reach_the_settings(communities: "Communities") -> None:
    with pytest.raises(InputError, match="steps: expected a divisor of the 4 features"):
        communities.fit(method="mlp", encoder="gru", settings={"steps": 3})
    with pytest.raises(InputError, match=r"setting 'run.encoder'"):
        communities.fit(encoder="lstm")


def test_it_keeps_the_weights_that_it_comes_with(communities: "Communities") -> None:
    made: list[nn.Module] = []

    def frozen(num_inputs: int, width: int) -> nn.Module:
        module = nn.Sequential(nn.Linear(num_inputs, width), nn.LayerNorm(width))
        with torch.no_grad():
            for weight in module.parameters():
                weight.fill_(0.25)
        made.append(module.requires_grad_(False))
        return module

    communities.fit(method="mlp", seed=0, encoder=frozen, settings={"epochs": 1})
    for module in made:
        assert all(bool((weight == 0.25).all()) for weight in module.parameters())


def test_what_it_draws_repeats_with_the_seed(communities: "Communities") -> None:
    def dropping(num_inputs: int, width: int) -> nn.Module:
        return nn.Sequential(nn.Linear(num_inputs, width), nn.Dropout(0.5))

    told = []
    for seed, elsewhere in ((0, 1), (0, 2), (3, 1)):
        torch.manual_seed(elsewhere)  # of whatever else draws numbers in this process
        model = communities.fit(
            method="mlp", seed=seed, encoder=dropping, settings={"epochs": 2, "members": 1}
        )
        told.append(model.predict_proba(range(20)))
    assert (told[0] == told[1]).all()
    assert (told[0] != told[2]).any()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda num_inputs, width: nn.Linear(3, 5), r"\(B, 8\), float32, got \(5,\) a node"),
        (lambda num_inputs, width: 3, "that gives a torch module, it gave int"),
        (lambda num_inputs, width: nn.Linear(4, 8), r"failed on inputs of shape \(B, 3\)"),
        (lambda num_inputs, width: nn.Linear(3, 8).double(), "failed on inputs of shape"),
        (lambda num_inputs, width: nn.LSTM(3, 8), "gives one tensor .* it gave tuple"),
        (lambda num_inputs: nn.Linear(3, 8), "failed when called with num_inputs=3 and width=8"),
    ],
)
def test_functions_that_make_no_encoder_are_refused(make: MakeEncoder, says: str) -> None:
    with pytest.raises(InputError, match=says):
        build_encoder(make, num_inputs=3, width=8)


def test_wrong_encoders_are_refused(communities: "Communities") -> None:
    with pytest.raises(InputError, match="got a module; how many inputs"):
        communities.fit(encoder=nn.Linear(3, 8))
    with pytest.raises(InputError, match="expected method 'certified' or 'mlp'"):
        with_encoder(find_method("gap"), wide)
    assert with_encoder(find_method("mlp"), wide).name == "mlp"
    assert repr(Vesper(encoder="gru")) == "Vesper(encoder='gru')"
