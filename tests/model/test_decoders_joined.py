"""Decoders of several data parties as one."""

import torch

from vesper.model.decoders import ConcatDecoder, CorrectingDecoder, JoinedDecoder


def joined() -> tuple[JoinedDecoder, CorrectingDecoder, ConcatDecoder]:
    first = CorrectingDecoder(num_classes=3, stages=2)
    for weight in first.weights:
        torch.nn.init.constant_(weight, 0.1)
    second = ConcatDecoder(embedding_width=4, depth=1, width=5, outputs=3, seed=0)
    return JoinedDecoder([first, second]), first, second


def test_scores_are_the_sum_of_those_of_all() -> None:
    decoder, first, second = joined()
    one, other = torch.randn(7, 3, 2), torch.randn(7, 4, 1)
    joint = torch.cat([one.flatten(1), other.flatten(1)], dim=1)[:, :, None]
    assert decoder.embedding_shape == (3 * 2 + 4, 1)
    expected = first.decode(one, 1) + second.decode(other, 1)
    torch.testing.assert_close(decoder.decode(joint, 1), expected)


def test_gradients_reach_each_party_as_if_it_were_alone() -> None:
    decoder, first, _ = joined()
    one, other = torch.randn(7, 3, 2), torch.randn(7, 4, 1)
    joint = torch.cat([one.flatten(1), other.flatten(1)], dim=1)[:, :, None].requires_grad_()
    torch.autograd.backward([decoder.decode(joint, 0)[:, 1].sum()])
    alone = one.clone().requires_grad_()
    torch.autograd.backward([first.decode(alone, 0)[:, 1].sum()])
    assert joint.grad is not None
    assert alone.grad is not None
    torch.testing.assert_close(joint.grad[:, :6, 0].reshape(7, 3, 2), alone.grad)


def test_a_party_that_has_left_is_decoded_as_of_its_last_stage() -> None:
    decoder, first, second = joined()
    one, other = torch.randn(7, 3, 2), torch.randn(7, 4, 1)
    joint = torch.cat([one.flatten(1), other.flatten(1)], dim=1)[:, :, None]
    decoder.leave(0, last_stage=0)
    expected = first.decode(one, 0) + second.decode(other, 1)
    torch.testing.assert_close(decoder.decode(joint, 1), expected)


def test_all_weights_are_trained_and_saved() -> None:
    decoder, first, second = joined()
    count = sum(1 for module in (first, second) for _ in module.parameters())
    assert len(list(decoder.module.parameters())) == count
    assert len(decoder.module.state_dict()) == count


def test_a_party_with_fewer_members_starts_over_with_its_first() -> None:
    first = CorrectingDecoder(num_classes=3, stages=1, members=3)
    second = CorrectingDecoder(num_classes=3, stages=1, members=2)
    decoder = JoinedDecoder([first, second])
    one, other = torch.randn(7, 3, 3), torch.randn(7, 3, 2)
    joint = torch.cat([one.flatten(1), other.flatten(1)], dim=1)[:, :, None]
    scores = decoder.train().decode(joint, 0)
    theirs = second.decode(other, 0)  # (2 * 7, 3)
    expected = first.decode(one, 0) + torch.cat([theirs, theirs[:7]])
    torch.testing.assert_close(scores, expected)
    assert decoder.eval().decode(joint, 0).shape == (7, 3)


def test_only_the_mean_logits_of_a_party_that_has_left_are_read() -> None:
    """Rows that it sent in a later stage contain member offsets of that stage."""
    first = CorrectingDecoder(num_classes=3, stages=2, members=2)
    second = CorrectingDecoder(num_classes=3, stages=2, members=2)
    decoder = JoinedDecoder([first, second])
    decoder.leave(0, last_stage=0)
    one, other = torch.randn(7, 3, 3), torch.randn(7, 3, 3)
    later = one.clone()
    later[:, :, 1:] = torch.randn(7, 3, 2)
    for stored in (one, later):
        joint = torch.cat([stored.flatten(1), other.flatten(1)], dim=1)[:, :, None]
        expected = second.train().decode(other, 1) + one[:, :, 0].repeat(2, 1)
        torch.testing.assert_close(decoder.train().decode(joint, 1), expected)
        assert first.training
