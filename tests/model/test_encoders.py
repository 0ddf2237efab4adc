"""Encoders by name: shapes, seeds, and the order of steps in a sequence."""

import pytest
import torch
from torch import Tensor, nn

from vesper.errors import InputError
from vesper.model.encoders import EncoderShape, SequenceEncoder, initialize, make_encoder

KINDS = ["mlp", "gru", "transformer"]


def made(kind: str, *, width: int = 12, steps: int | None = 5, dropout: float = 0.3) -> nn.Module:
    shape = EncoderShape(
        num_inputs=30, num_features=15, steps=steps, width=width, dropout=dropout, seed=4
    )
    encoder = make_encoder(kind, shape)
    initialize(encoder, 7)
    return encoder


@pytest.mark.parametrize("kind", KINDS)
def test_encodings_repeat_and_take_gradients(kind: str) -> None:
    inputs = torch.randn(6, 30, generator=torch.Generator().manual_seed(0))
    first, second = made(kind), made(kind)
    for _ in range(2):  # dropout continues where it was, in both
        assert torch.equal(first(inputs), second(inputs))
    assert first(inputs).shape == (6, 12)
    assert not torch.equal(first(inputs), first(inputs))  # other masks
    first.eval()
    assert torch.equal(first(inputs), first(inputs))
    torch.autograd.backward([first(inputs).sum()])
    assert all(weight.grad is not None for weight in first.parameters())


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_a_sequence_encoder_depends_on_the_order(kind: str) -> None:
    encoder = made(kind, dropout=0.0).eval()
    steps = torch.randn(1, 2, 5, 3, generator=torch.Generator().manual_seed(1))
    forwards, backwards = (s.reshape(1, 30) for s in (steps, steps.flip(2)))
    assert not torch.allclose(encoder(forwards), encoder(backwards), atol=1e-4)


def test_both_views_of_a_step_come_together() -> None:
    class First(nn.Module):
        def forward(self, sequences: Tensor) -> Tensor:
            return sequences[:, 0]

    inputs = torch.arange(12.0)[None]  # two views, three steps of two
    first_step = SequenceEncoder(First(), views=2, steps=3, width=4)(inputs)
    assert first_step.tolist() == [[0, 1, 6, 7]]


def test_heads_divide_any_width() -> None:
    assert made("transformer", width=7)(torch.zeros(2, 30)).shape == (2, 7)


@pytest.mark.parametrize(("steps", "got"), [(None, "none"), (4, "4")])
def test_steps_must_divide_the_features(steps: int | None, got: str) -> None:
    with pytest.raises(InputError, match=f"steps: expected a divisor of the 15 .* got {got}; set"):
        made("gru", steps=steps)


def test_an_unknown_encoder_is_refused() -> None:
    with pytest.raises(InputError, match="encoder: expected mlp, gru, transformer, got 'cnn'"):
        made("cnn")
