"""Layer normalisation whose gradients are the same to the bit for any number of threads.

    out = weight (x - mean) / sqrt(variance + eps) + bias        mean and variance of each row

PyTorch sums the gradients of weight and bias in as many parts as there are threads, so that a run
on another number of cores would train other weights. Here they are sums over rows as those of a
linear layer.
"""

from torch import Tensor, nn
from torch.nn import functional as F


class RowNorm(nn.LayerNorm):
    """`nn.LayerNorm` of one dimension, but for the order of sums in its gradients."""

    def forward(self, input: Tensor) -> Tensor:
        """(.., width) -> (.., width)."""
        rows = F.layer_norm(input, self.normalized_shape, eps=self.eps)
        return rows * self.weight + self.bias
