import torch

from vesper.model.encoders import MlpEncoder, initialize
from vesper.model.ensemble import mean_logits
from vesper.model.pre import PrivateRepresentationExtractor


def extractor(
    seed: int = 0, *, members: int = 2, hops: int = 2, dropout: float = 0.0
) -> PrivateRepresentationExtractor:
    return PrivateRepresentationExtractor(
        [MlpEncoder(5, width=8, dropout=dropout, seed=seed + k) for k in range(members)],
        encoding_width=8,
        num_classes=3,
        message_width=4,
        hops=hops,
        dropout=dropout,
        seed=seed,
    )


def released(hops: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    sums = [torch.randn(6, 4) for _ in range(hops)]
    return sums, [torch.ones(4)] * (hops if hops == 1 else hops + 1)


def test_shapes() -> None:
    made = extractor(members=3)
    assert made.num_members == 3
    logits_by_member = made.edge_free_logits(torch.randn(6, 5))
    assert logits_by_member.shape == (6, 3, 3)
    logits = mean_logits(logits_by_member)
    assert logits.shape == (6, 3)
    assert made.logits_with_releases(logits, *released(1)).shape == (6, 3, 3)
    assert made.logits_with_releases(logits, *released(2)).shape == (6, 3, 3)


def test_gradients_agree_with_finite_differences() -> None:
    made = extractor().double()
    inputs = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(made.edge_free_logits, (inputs,))
    logits = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    sums = [torch.randn(3, 4, dtype=torch.float64)]
    scales = [torch.ones(4, dtype=torch.float64)]
    assert torch.autograd.gradcheck(lambda x: made.logits_with_releases(x, sums, scales), (logits,))


def test_weights_come_from_the_seed_alone() -> None:
    torch.manual_seed(1)
    first = extractor()
    torch.manual_seed(2)
    second = extractor()
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)
    initialize(second, 1)
    assert not torch.equal(next(first.parameters()), next(second.parameters()))


def test_members_start_differently_and_drop_different_units() -> None:
    inputs = torch.randn(6, 5)
    logits_by_member = extractor().edge_free_logits(inputs)
    assert not torch.allclose(logits_by_member[:, :, 0], logits_by_member[:, :, 1])
    dropping = extractor(dropout=0.5).train()
    dropping.load_state_dict(extractor(dropout=0.5).state_dict())
    with torch.no_grad():  # the same weights in both members
        for one, other in zip(
            dropping.heads[0].parameters(), dropping.heads[1].parameters(), strict=True
        ):
            other.copy_(one)
    logits_by_member = dropping.logits_with_releases(torch.randn(6, 3), *released(1))
    assert not torch.allclose(logits_by_member[:, :, 0], logits_by_member[:, :, 1])


def test_the_loss_of_a_member_has_no_gradient_in_another() -> None:
    made = extractor()
    for logits_by_member, parts in (
        (made.edge_free_logits(torch.randn(6, 5)), [made.encoders, made.edge_free_heads]),
        (made.logits_with_releases(torch.randn(6, 3), *released(1)), [made.heads[:2]]),
    ):
        torch.autograd.backward([logits_by_member[:, :, 0].square().sum()])
        for part in parts:
            mine, theirs = (list(part[k].parameters()) for k in range(2))
            assert all(weight.grad is not None and weight.grad.any() for weight in mine)
            assert not any(weight.grad is not None and weight.grad.any() for weight in theirs)


def test_the_first_stage_is_the_same_whatever_hops_follow() -> None:
    inputs = torch.randn(6, 5)
    assert torch.equal(
        extractor(hops=0).edge_free_logits(inputs), extractor(hops=2).edge_free_logits(inputs)
    )
