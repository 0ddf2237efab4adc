import torch

from vesper.model.gap_network import HopDecoder, HopNetwork, SeluPerceptron, pad_hops


def network(seed: int) -> HopNetwork:
    return HopNetwork(
        6, width=9, message_width=4, bases=2, plain_last=False, dropout=0.2, seed=seed
    )


def test_weights_follow_from_the_seed_and_normalisations_start_neutral() -> None:
    first, second, other = network(1), network(1), network(2)
    assert all(
        torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True)
    )
    assert not torch.equal(next(first.parameters()), next(other.parameters()))
    norms = [part for part in first.modules() if isinstance(part, torch.nn.BatchNorm1d)]
    assert len(norms) == 4
    assert all((n.weight == 1).all() and (n.bias == 0).all() for n in norms)


def test_a_plain_perceptron_ends_linear() -> None:
    kinds = [type(layer).__name__ for layer in perceptron(plain_last=True).layers]
    assert kinds == ["Linear", "SELU", "BatchNorm", "SeededDropout", "Linear"]
    assert type(perceptron(plain_last=False).layers[-1]).__name__ == "SeededDropout"


def perceptron(*, plain_last: bool) -> SeluPerceptron:
    return SeluPerceptron((3, 5, 2), plain_last=plain_last, dropout=0.1, seed=0)


def test_a_head_sees_the_hops_of_its_stage_alone() -> None:
    decoder = HopDecoder(message_width=4, depths=(1, 3), activate=True, outputs=2, seed=0).eval()
    embeddings = torch.randn(5, 4, 3, generator=torch.Generator().manual_seed(0))
    changed = embeddings.clone()
    changed[:, :, 1:] = 0
    assert torch.equal(decoder.decode(embeddings, 0), decoder.decode(changed, 0))
    assert not torch.equal(decoder.decode(embeddings, 1), decoder.decode(changed, 1))
    assert torch.isfinite(decoder.decode(torch.zeros(2, 4, 3), 1)).all()


def test_later_hops_are_zero() -> None:
    padded = pad_hops([torch.ones(2, 4)], depth=3)
    assert padded.shape == (2, 4, 3)
    assert (padded[:, :, 1:] == 0).all()
