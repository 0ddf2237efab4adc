"""What members say, and how it crosses: their mean, and how all but the last differ from it.

    consensus   = mean over members m of opinion_m
    deviation_m = opinion_m - consensus              the last is minus the sum of all others

A stage has its place among the embeddings, and in it always stands what its members say together:
who reads a stage that is over need not know whether it was the newest when this was sent. With one
member nothing else crosses.
"""

from torch import Tensor


def mean_logits(logits_by_member: Tensor) -> Tensor:
    """What members say together: (B, num_classes, members) -> (B, num_classes)."""
    return logits_by_member.mean(dim=2)


def member_offsets(logits_by_member: Tensor, mean: Tensor) -> Tensor:
    """How members differ from it: (B, num_classes, members - 1)."""
    return logits_by_member[:, :, :-1] - mean[:, :, None]


def member_logits(mean: Tensor, offsets: Tensor) -> list[Tensor]:
    """What each member says: (B, num_classes) and (B, num_classes, members - 1) -> members.

    >>> import torch
    >>> said = torch.tensor([[[3.0, 5.0, 1.0]]])
    >>> together = mean_logits(said)
    >>> [each.item() for each in member_logits(together, member_offsets(said, together))]
    [3.0, 5.0, 1.0]
    """
    if offsets.shape[2] == 0:
        return [mean]
    others = [mean + each for each in offsets.unbind(dim=2)]
    return [*others, mean - offsets.sum(dim=2)]
