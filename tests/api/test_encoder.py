"""Custom encoders."""

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

    model = communities.fit(
        method="mlp", seed=0, simulate_noise=True, encoder=make, settings={"epochs": 2}
    )
    assert len(made) == 4, "one per ensemble member"
    before = model.predict_proba([0, 1])
    assert before[0].tolist() != before[1].tolist()
    with torch.no_grad():
        for weight in (weight for module in made for weight in module.parameters()):
            weight.zero_()
    after = model.predict_proba([0, 1])
    assert after[0].tolist() == after[1].tolist(), "predictions use this module"


def test_encoders_by_name_reach_the_settings(communities: "Communities") -> None:
    with pytest.raises(InputError, match="steps: expected a divisor of the 4 features"):
        communities.fit(method="mlp", encoder="gru", settings={"steps": 3})
    with pytest.raises(InputError, match=r"setting 'run.encoder'"):
        communities.fit(encoder="lstm")


def test_initial_weights_are_kept(communities: "Communities") -> None:
    made: list[nn.Module] = []

    def frozen(num_inputs: int, width: int) -> nn.Module:
        module = nn.Sequential(nn.Linear(num_inputs, width), nn.LayerNorm(width))
        with torch.no_grad():
            for weight in module.parameters():
                weight.fill_(0.25)
        made.append(module.requires_grad_(False))
        return module

    communities.fit(
        method="mlp", seed=0, simulate_noise=True, encoder=frozen, settings={"epochs": 1}
    )
    for module in made:
        assert all(bool((weight == 0.25).all()) for weight in module.parameters())


def test_its_random_numbers_repeat_with_the_seed(communities: "Communities") -> None:
    def dropping(num_inputs: int, width: int) -> nn.Module:
        return nn.Sequential(nn.Linear(num_inputs, width), nn.Dropout(0.5))

    predicted = []
    for seed, elsewhere in ((0, 1), (0, 2), (3, 1)):
        torch.manual_seed(elsewhere)  # other code draws numbers in this process, too
        model = communities.fit(
            method="mlp", seed=seed, encoder=dropping, settings={"epochs": 2, "members": 1}
        )
        predicted.append(model.predict_proba(range(20)))
    assert (predicted[0] == predicted[1]).all()
    assert (predicted[0] != predicted[2]).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda num_inputs, width: nn.Linear(3, 5), r"\(B, 8\), float32, got \(5,\) per node"),
        (lambda num_inputs, width: 3, "that returns a torch module, it returned int"),
        (lambda num_inputs, width: nn.Linear(4, 8), r"failed on inputs of shape \(B, 3\)"),
        (lambda num_inputs, width: nn.Linear(3, 8).double(), "failed on inputs of shape"),
        (lambda num_inputs, width: nn.LSTM(3, 8), "returns one tensor .* it returned tuple"),
        (lambda num_inputs: nn.Linear(3, 8), "failed when called with num_inputs=3 and width=8"),
    ],
)
def test_functions_that_return_no_encoder_are_refused(make: MakeEncoder, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_encoder(make, num_inputs=3, width=8)


def test_wrong_encoders_are_refused(communities: "Communities") -> None:
    with pytest.raises(InputError, match="got a module; the number of inputs"):
        communities.fit(encoder=nn.Linear(3, 8))
    with pytest.raises(InputError, match="expected method 'certified' or 'mlp'"):
        with_encoder(find_method("gap"), wide)
    assert with_encoder(find_method("mlp"), wide).name == "mlp"
    assert repr(Vesper(encoder="gru")) == "Vesper(encoder='gru')"
