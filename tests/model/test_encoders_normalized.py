"""The encoder of the certified plan: each row on its own, and how much is dropped."""

import pytest
import torch

from vesper.model.encoders import (
    EncoderShape,
    MlpEncoder,
    NormalizedEncoder,
    initialize,
    make_encoder,
)
from vesper.model.network_layers import SeededDropout


def made(*, dropout: float = 0.2) -> NormalizedEncoder:
    encoder = NormalizedEncoder(10, width=6, dropout=dropout, seed=1)
    initialize(encoder, 3)
    return encoder


def test_a_perceptron_is_normalised_if_the_shape_requires_it() -> None:
    for normalized, kind in ((True, NormalizedEncoder), (False, MlpEncoder)):
        shape = EncoderShape(
            num_inputs=10,
            num_features=5,
            steps=None,
            width=6,
            dropout=0.2,
            seed=1,
            normalized=normalized,
        )
        assert type(make_encoder("mlp", shape)) is kind


def test_an_encoding_depends_on_no_other_node() -> None:
    encoder = made().eval()
    rows = torch.randn(40, 10, generator=torch.Generator().manual_seed(0))
    others = torch.cat([rows[:20], 100 * rows[20:]])
    assert torch.equal(encoder(rows)[:20], encoder(others)[:20])


def test_hidden_units_do_not_depend_on_the_scale_of_inputs() -> None:
    encoder = made().eval()
    rows = torch.randn(8, 10, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(encoder(1e4 * rows), encoder(1e5 * rows), atol=1e-3)


@pytest.mark.parametrize(("dropout", "rates"), [(0.2, [0.1, 0.36]), (0.0, [0.0, 0.0])])
def test_hidden_units_are_dropped_more_often_than_inputs(
    dropout: float, rates: list[float]
) -> None:
    inputs = torch.ones(4000, 10)
    drops = [each for each in made(dropout=dropout).modules() if isinstance(each, SeededDropout)]
    actual = [(drop.train()(inputs) == 0).float().mean().item() for drop in drops]
    assert actual == pytest.approx(rates, abs=0.02)


def test_gradients_are_those_of_finite_differences() -> None:
    encoder = made(dropout=0.0).double()
    rows = torch.randn(5, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(encoder, (rows.requires_grad_(),))
