"""Decoder that standardises received embeddings: every entry has mean 0 and variance 1.

    training:    (embedding - mean) / sqrt(variance + 1e-5)      over the roots of the batch
    evaluation:  the same with running means of both, weighted by the roots they come from

Rows of message passing are unit vectors close to one common direction; what distinguishes nodes is
a small part of them. This runs at the label party on what it has received, so it is
post-processing.
"""

import torch
from torch import Tensor, nn

from vesper.model.decoders import Decoder

DECAY = 0.5
"""Factor by which a batch reduces the weight of earlier batches."""
FLOOR = 1e-5


class StandardizingDecoder(nn.Module):
    """A decoder of standardised embeddings.

    Args:
        decoder: decodes what was standardised.
        embedding_width: width of one layer.
        depth: number of layers.
    """

    mean: Tensor
    variance: Tensor
    total_weight: Tensor

    def __init__(self, decoder: Decoder, *, embedding_width: int, depth: int) -> None:
        super().__init__()
        self.inner, self._decode = decoder.module, decoder.decode
        self.embedding_shape = embedding_width, depth
        self.register_buffer("mean", torch.zeros(embedding_width, depth))
        self.register_buffer("variance", torch.ones(embedding_width, depth))
        self.register_buffer("total_weight", torch.tensor(0.0))

    @property
    def module(self) -> nn.Module:
        """All weights and running means: this module."""
        return self

    def decode(self, embeddings: Tensor, stage: int) -> Tensor:
        """(B, embedding_width, depth) -> (B, outputs)."""
        mean, variance = self.mean, self.variance
        if self.training and len(embeddings) > 1:  # one root has no spread
            mean = embeddings.mean(dim=0)
            variance = embeddings.var(dim=0, correction=0)
            self._update_running(mean.detach(), variance.detach(), roots=len(embeddings))
        return self._decode((embeddings - mean) / (variance + FLOOR).sqrt(), stage)

    def _update_running(self, mean: Tensor, variance: Tensor, *, roots: int) -> None:
        self.total_weight = DECAY * self.total_weight + roots
        share = roots / self.total_weight
        self.mean = torch.lerp(self.mean, mean, share)
        self.variance = torch.lerp(self.variance, variance, share)
