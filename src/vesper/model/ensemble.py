"""Logits of ensemble members as they cross the wire: their mean, and all offsets but the last.

    mean     = mean over members m of logits_m
    offset_m = logits_m - mean                the last one is minus the sum of all others

Each stage has a place among the embeddings that always contains its mean logits, so a reader of
an earlier stage need not know whether it was the newest when this was sent. With one member nothing
but the mean crosses.
"""

from torch import Tensor


def mean_logits(logits_by_member: Tensor) -> Tensor:
    """Average the members: (B, num_classes, members) -> (B, num_classes)."""
    return logits_by_member.mean(dim=2)


def member_offsets(logits_by_member: Tensor, mean: Tensor) -> Tensor:
    """Return how all members but the last differ from the mean: (B, num_classes, members - 1)."""
    return logits_by_member[:, :, :-1] - mean[:, :, None]


def member_logits(mean: Tensor, offsets: Tensor) -> list[Tensor]:
    """Return the logits of each member, (B, num_classes), from the mean and the offsets.

    >>> import torch
    >>> logits = torch.tensor([[[3.0, 5.0, 1.0]]])
    >>> mean = mean_logits(logits)
    >>> [each.item() for each in member_logits(mean, member_offsets(logits, mean))]
    [3.0, 5.0, 1.0]
    """
    if offsets.shape[2] == 0:
        return [mean]
    others = [mean + each for each in offsets.unbind(dim=2)]
    return [*others, mean - offsets.sum(dim=2)]
