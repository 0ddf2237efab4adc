import torch

from vesper.model.encoder import MlpEncoder, initialize
from vesper.model.pre import PrivateRepresentationExtractor


def extractor(seed: int = 0) -> PrivateRepresentationExtractor:
    encoder = MlpEncoder(5, width=8, dropout=0.0, seed=0)
    return PrivateRepresentationExtractor(
        encoder,
        encoding_width=8,
        num_classes=3,
        message_width=4,
        hops=2,
        dropout=0.0,
        seed=seed,
    )


def test_shapes() -> None:
    made = extractor()
    logits = made.edge_free(torch.randn(6, 5))
    assert logits.shape == (6, 3)
    released = [torch.randn(6, 4), torch.randn(6, 4)]
    scales = [torch.ones(4)] * 3
    assert made.with_releases(logits, released[:1], scales[:1]).shape == (6, 3)
    assert made.with_releases(logits, released, scales).shape == (6, 3)


def test_gradients_agree_with_finite_differences() -> None:
    made = extractor().double()
    inputs = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(made.edge_free, (inputs,))
    logits = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    released = [torch.randn(3, 4, dtype=torch.float64)]
    scales = [torch.ones(4, dtype=torch.float64)]
    assert torch.autograd.gradcheck(lambda x: made.with_releases(x, released, scales), (logits,))


def test_weights_come_from_the_seed_alone() -> None:
    torch.manual_seed(1)
    first = extractor()
    torch.manual_seed(2)
    second = extractor()
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)
    initialize(second, 1)
    assert not torch.equal(next(first.parameters()), next(second.parameters()))
