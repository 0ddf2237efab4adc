import pytest
import torch

from vesper.model.ensemble import mean_logits, member_logits, member_offsets


@pytest.mark.parametrize("members", [1, 2, 5])
def test_what_each_says_comes_back_and_so_does_its_gradient(members: int) -> None:
    said = torch.randn(4, 3, members, dtype=torch.float64, requires_grad=True)
    together = mean_logits(said)
    deviations = member_offsets(said, together)
    assert deviations.shape == (4, 3, members - 1)
    heard = member_logits(together, deviations)
    torch.testing.assert_close(torch.stack(heard, dim=2), said)
    pulls = torch.randn(4, 3, members, dtype=torch.float64)
    torch.autograd.backward([(torch.stack(heard, dim=2) * pulls).sum()])
    assert said.grad is not None
    torch.testing.assert_close(said.grad, pulls)


def test_one_alone_is_heard_to_the_bit() -> None:
    said = torch.randn(4, 3, 1)
    together = mean_logits(said)
    (heard,) = member_logits(together, member_offsets(said, together))
    assert torch.equal(heard, said[:, :, 0])
