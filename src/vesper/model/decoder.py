"""The decoder at the label party: received embeddings of all layers to class scores.

    CONCAT:  output = MLP(embedding_1, .., embedding_L)
    stage by stage:  output = logits_stage + W (logits_0, .., logits_stage) + b,   W, b start at 0
                     of each member while training, and their mean

In the certified plan embeddings are class logits of the stages so far and the decoder corrects the
newest; so the data party's newest head learns class logits, which its messages need. The correction
is linear: whatever a larger one learned, the messages of the next hop would lack.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from vesper.model.encoder import initialize
from vesper.model.opinions import opinions_of


class Decoder(Protocol):
    """Anything that makes scores of embeddings."""

    @property
    def module(self) -> nn.Module:
        """All weights at the label party."""

    @property
    def embedding_shape(self) -> tuple[int, int]:
        """Width and depth of the embeddings that it decodes."""

    def decode(self, embeddings: Tensor, stage: int) -> Tensor:
        """(B, width, depth) embeddings -> (B, num_outputs) scores.

        While training, scores of several members may come out, (members * B, num_outputs), all
        rows of one after those of another: each has a loss of its own.
        """


class ConcatDecoder(nn.Module):
    """The paper's CONCAT: all layers side by side, then an MLP."""

    def __init__(
        self, *, embedding_width: int, depth: int, width: int, outputs: int, seed: int
    ) -> None:
        super().__init__()
        self.embedding_shape = embedding_width, depth
        self.layers = nn.Sequential(
            nn.Linear(embedding_width * depth, width), nn.ReLU(), nn.Linear(width, outputs)
        )
        initialize(self, seed)

    @property
    def module(self) -> nn.Module:
        """All weights: this module."""
        return self

    def decode(self, embeddings: Tensor, stage: int) -> Tensor:
        """Decode all layers, whatever the stage."""
        scores: Tensor = self.layers(embeddings.flatten(start_dim=1))
        return scores  # (B, outputs)


class CorrectingDecoder(nn.Module):
    """Logits of the newest stage, corrected by those of all.

        scores = logits_k + bias + sum over stages j <= k of W_j logits_j

    Embeddings are logits of all stages, then how members of the newest differ (`opinions`). Members
    are corrected alike, so the mean of their scores is the corrected mean.

    Weights of a stage are a tensor of their own, and those of later stages are not looked at: a
    stage is computed, and learned, as if it were the last that there is, to the bit. So the first
    is the model without edges.
    """

    def __init__(self, *, num_classes: int, stages: int, members: int = 1) -> None:
        super().__init__()
        self.embedding_shape = num_classes, stages - 1 + members
        self._stages = stages
        self.weights = nn.ParameterList(
            torch.zeros(num_classes, num_classes) for _ in range(stages)
        )
        self.bias = nn.Parameter(torch.zeros(num_classes))

    @property
    def module(self) -> nn.Module:
        """All weights: this module."""
        return self

    def decode(self, embeddings: Tensor, stage: int) -> Tensor:
        """(B, num_classes, stages - 1 + members) -> (B, num_classes), or a block a member."""
        *before, newest = [
            each.contiguous() for each in embeddings[:, :, : stage + 1].unbind(dim=2)
        ]
        if not self.training:
            return self._corrected(newest, before)
        opinions = opinions_of(newest, embeddings[:, :, self._stages :])
        return torch.cat([self._corrected(each, before) for each in opinions])

    def _corrected(self, newest: Tensor, before: Sequence[Tensor]) -> Tensor:
        """(B, num_classes) logits -> (B, num_classes) scores."""
        scores = newest + self.bias
        for known, weight in zip([*before, newest], self.weights, strict=False):
            scores = scores + known @ weight.T
        return scores
