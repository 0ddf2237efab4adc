import pytest
import torch

from vesper.model.ensemble import mean_logits, member_logits, member_offsets


@pytest.mark.parametrize("members", [1, 2, 5])
def test_members_and_their_gradients_are_recovered(members: int) -> None:
    logits = torch.randn(4, 3, members, dtype=torch.float64, requires_grad=True)
    mean = mean_logits(logits)
    offsets = member_offsets(logits, mean)
    assert offsets.shape == (4, 3, members - 1)
    recovered = member_logits(mean, offsets)
    torch.testing.assert_close(torch.stack(recovered, dim=2), logits)
    weights = torch.randn(4, 3, members, dtype=torch.float64)
    torch.autograd.backward([(torch.stack(recovered, dim=2) * weights).sum()])
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, weights)


def test_a_single_member_is_recovered_bit_for_bit() -> None:
    logits = torch.randn(4, 3, 1)
    mean = mean_logits(logits)
    (recovered,) = member_logits(mean, member_offsets(logits, mean))
    assert torch.equal(recovered, logits[:, :, 0])
