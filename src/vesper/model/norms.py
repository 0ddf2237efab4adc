"""Layer normalisation with reproducible gradients, and batch normalisation of a single row.

    out = weight (x - mean) / sqrt(variance + eps) + bias        mean and variance of each row

PyTorch sums the gradients of weight and bias of a layer normalisation in as many parts as there are
threads, so a run on another number of cores would train other weights. `RowNorm` sums them over
rows as a linear layer does: they are the same bit for bit for any number of threads.
"""

from torch import Tensor, nn
from torch.nn import functional as F


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation that uses the statistics of earlier batches for a batch of one row.

    One row has no spread. The last batch of an epoch is one row whenever batch_size divides
    num_train - 1.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(B, width) -> (B, width)."""
        if len(input) > 1:
            return super().forward(input)
        return F.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )


class RowNorm(nn.LayerNorm):
    """`nn.LayerNorm` of one dimension, except for the order of sums in its gradients."""

    def forward(self, input: Tensor) -> Tensor:
        """(.., width) -> (.., width)."""
        rows = F.layer_norm(input, self.normalized_shape, eps=self.eps)
        return rows * self.weight + self.bias
