import torch

from vesper.model.decoders import ConcatDecoder, CorrectingDecoder
from vesper.model.ensemble import mean_logits, member_offsets


def test_the_correction_starts_at_zero_and_then_learns() -> None:
    decoder = CorrectingDecoder(num_classes=3, stages=2)
    embeddings = torch.randn(5, 3, 2)
    for stage in range(2):
        assert torch.equal(decoder.decode(embeddings, stage), embeddings[:, :, stage])
    loss = decoder.decode(embeddings, 1).square().sum()
    torch.autograd.backward([loss])
    for weight in decoder.parameters():
        assert weight.grad is not None
        assert weight.grad.abs().max() > 0


def test_concat_reads_every_layer() -> None:
    decoder = ConcatDecoder(embedding_width=4, depth=2, width=8, outputs=3, seed=0)
    embeddings = torch.randn(5, 4, 2, requires_grad=True)
    assert decoder.decode(embeddings, 0).shape == (5, 3)
    torch.autograd.backward([decoder.decode(embeddings, 0).sum()])
    assert embeddings.grad is not None
    assert (embeddings.grad.abs().amax(dim=(0, 1)) > 0).all()


def test_a_stage_does_not_read_later_ones() -> None:
    decoder = CorrectingDecoder(num_classes=3, stages=3)
    with torch.no_grad():
        for weight in decoder.parameters():
            weight.fill_(0.3)
    embeddings = torch.randn(5, 3, 3)
    cut = embeddings.clone()
    cut[:, :, 2] = 0
    assert torch.equal(decoder.decode(embeddings, 1), decoder.decode(cut, 1))
    assert not torch.equal(decoder.decode(embeddings, 2), decoder.decode(cut, 2))


def test_members_are_corrected_alike_and_averaged() -> None:
    decoder = CorrectingDecoder(num_classes=3, stages=2, members=4)
    assert decoder.embedding_shape == (3, 2 + 3)
    with torch.no_grad():
        for weight in decoder.parameters():
            weight.uniform_(-0.5, 0.5)
    alone = CorrectingDecoder(num_classes=3, stages=2)
    alone.load_state_dict(decoder.state_dict())
    logits_by_member = torch.randn(5, 3, 4)
    mean = mean_logits(logits_by_member)
    for stage in range(2):
        stages = torch.randn(5, 3, 2)
        stages[:, :, stage] = mean
        sent = torch.cat([stages, member_offsets(logits_by_member, mean)], dim=2)
        expected = []
        for logits in logits_by_member.unbind(dim=2):  # each as if there were no other
            stages[:, :, stage] = logits
            expected.append(alone.decode(stages, stage))
        assert torch.allclose(decoder.train().decode(sent, stage), torch.cat(expected), atol=1e-6)
        assert torch.allclose(
            decoder.eval().decode(sent, stage), torch.stack(expected).mean(dim=0), atol=1e-6
        )
