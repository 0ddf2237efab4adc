"""What members say, and how it crosses: their mean, and how all but the last differ from it.

    consensus   = mean over members m of opinion_m
    deviation_m = opinion_m - consensus              the last is minus the sum of all others

A stage has its place among the embeddings, and in it always stands what its members say together:
who reads a stage that is over need not know whether it was the newest when this was sent. With one
member nothing else crosses.
"""

from torch import Tensor


def consensus_of(opinions: Tensor) -> Tensor:
    """What members say together: (B, num_classes, members) -> (B, num_classes)."""
    return opinions.mean(dim=2)


def deviations_of(opinions: Tensor, consensus: Tensor) -> Tensor:
    """How members differ from it: (B, num_classes, members - 1)."""
    return opinions[:, :, :-1] - consensus[:, :, None]


def opinions_of(consensus: Tensor, deviations: Tensor) -> list[Tensor]:
    """What each member says: (B, num_classes) and (B, num_classes, members - 1) -> members.

    >>> import torch
    >>> said = torch.tensor([[[3.0, 5.0, 1.0]]])
    >>> together = consensus_of(said)
    >>> [each.item() for each in opinions_of(together, deviations_of(said, together))]
    [3.0, 5.0, 1.0]
    """
    if deviations.shape[2] == 0:
        return [consensus]
    others = [consensus + each for each in deviations.unbind(dim=2)]
    return [*others, consensus - deviations.sum(dim=2)]
