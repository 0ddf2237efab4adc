import torch

from vesper.model.decoder import ConcatDecoder
from vesper.model.encoder import initialize


def test_it_starts_as_the_newest_stage_and_then_learns() -> None:
    decoder = ConcatDecoder(num_classes=3, stages=2, width=8)
    initialize(decoder, 0)
    decoder.start_at_identity()
    embeddings = torch.randn(5, 3, 2)
    for stage in range(2):
        assert torch.equal(decoder(embeddings, stage), embeddings[:, :, stage])
    loss = decoder(embeddings, 1).square().sum()
    torch.autograd.backward([loss])
    gradient = dict(decoder.named_parameters())["correction.2.weight"].grad
    assert gradient is not None
    assert gradient.abs().max() > 0
