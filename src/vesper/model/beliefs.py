"""What a node is held to be, once it has spoken: Bayes' rule."""

import torch
from torch import Tensor


def combined(posteriors: Tensor, voices: Tensor) -> Tensor:
    """Posterior after a node has spoken, from the one before: all (B, num_classes).

    A voice says how likely each class makes what was said. That of an open label is one-hot, and
    so is the posterior after it; that of a response leaves some doubt.

    >>> combined(torch.tensor([[0.2, 0.8], [0.5, 0.5]]), torch.tensor([[1.0, 0.0], [0.9, 0.1]]))
    tensor([[1.0000, 0.0000],
            [0.9000, 0.1000]])
    """
    joint = posteriors * voices
    total = joint.sum(dim=1, keepdim=True)
    return torch.where(total > 0, joint / total, voices)  # of a class held impossible: believe it
