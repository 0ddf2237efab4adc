import pytest
import torch

from vesper.mechanism.grid import to_grid
from vesper.model.encoder import MlpEncoder, initialize
from vesper.model.pre import PrivateRepresentationExtractor


def extractor(hops: int = 2, degree_share: float = 0.3) -> PrivateRepresentationExtractor:
    encoder = MlpEncoder(5, width=8, dropout=0.0, seed=0)
    made = PrivateRepresentationExtractor(
        encoder, num_classes=3, hops=hops, degree_share=degree_share
    )
    initialize(made, 0)
    return made


@pytest.mark.parametrize("degree_share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("spread", [0.0, 1.0, 50.0])
def test_messages_fit_the_grid_whatever_the_logits(degree_share: float, spread: float) -> None:
    logits = spread * torch.randn(200, 3, generator=torch.Generator().manual_seed(1))
    messages = extractor(degree_share=degree_share).messages(logits)
    assert messages.shape == (200, 4)
    assert messages.norm(dim=1).max() <= 1 + 1e-5
    assert torch.allclose(messages[:, 0], torch.tensor(degree_share))
    to_grid(messages.numpy())


def test_equal_posteriors_say_nothing_but_the_degree() -> None:
    messages = extractor().messages(torch.zeros(4, 3))
    assert messages[:, 1:].abs().max() == 0


def test_later_stages_are_zero_and_only_the_newest_head_learns() -> None:
    made = extractor()
    features, released = torch.randn(6, 5), torch.randn(6, 8)
    out = made(features, released, 1)
    assert out.shape == (6, 3, 3)
    assert out[:, :, 2].abs().max() == 0
    torch.autograd.backward([out.sum()])
    learning = {name for name, weight in made.named_parameters() if weight.grad is not None}
    assert {name.split(".")[1] for name in learning if name.startswith("heads")} == {"1"}
    assert "encoder.layers.1.weight" in learning


def test_gradients_agree_with_finite_differences() -> None:
    made = extractor().double()
    features = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    released = torch.randn(3, 8, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: made(x, released, 2)[:, :, 2], (features,))


def test_weights_come_from_the_seed_alone() -> None:
    torch.manual_seed(1)
    first = extractor()
    torch.manual_seed(2)
    second = extractor()
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)
    initialize(second, 1)
    assert not torch.equal(next(first.parameters()), next(second.parameters()))
