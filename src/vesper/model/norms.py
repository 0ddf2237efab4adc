"""Layer normalisation whose gradients are the same to the bit for any number of threads.

    out = weight (x - mean) / sqrt(variance + eps) + bias        mean and variance of each row

PyTorch sums the gradients of weight and bias in as many parts as there are threads, so that a run
on another number of cores would train other weights. Here they are sums over rows as those of a
linear layer.

Batch normalisation that a batch of one row does not stop.
"""

from torch import Tensor, nn
from torch.nn import functional as F


class BatchNorm(nn.BatchNorm1d):
    """Statistics of the batch; of the batches before where there is only one row, with no spread.

    The last batch of an epoch has one row whenever batch_size divides num_train - 1.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(B, width) -> (B, width)."""
        if len(input) > 1:
            return super().forward(input)
        return F.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )


class RowNorm(nn.LayerNorm):
    """`nn.LayerNorm` of one dimension, but for the order of sums in its gradients."""

    def forward(self, input: Tensor) -> Tensor:
        """(.., width) -> (.., width)."""
        rows = F.layer_norm(input, self.normalized_shape, eps=self.eps)
        return rows * self.weight + self.bias
