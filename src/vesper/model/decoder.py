"""The decoder at the label party: received embeddings of all layers to class scores.

    CONCAT:  output = MLP(embedding_1, .., embedding_L)
    stage by stage:  output = logits_stage + W (logits_0, .., logits_stage) + b,   W, b start at 0

In the certified plan embeddings are class logits of the stages so far and the decoder corrects the
newest; so the data party's newest head learns class logits, which its messages need. The correction
is linear: whatever a larger one learned, the messages of the next hop would lack.
"""

from typing import Protocol

import torch
from torch import Tensor, nn

from vesper.model.encoder import initialize


class Decoder(Protocol):
    """Anything that makes scores of embeddings."""

    @property
    def module(self) -> nn.Module:
        """All weights at the label party."""

    @property
    def embedding_shape(self) -> tuple[int, int]:
        """Width and depth of the embeddings that it decodes."""

    def decode(self, embeddings: Tensor, stage: int) -> Tensor:
        """(B, width, depth) embeddings -> (B, num_outputs) scores."""


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

    Weights of a stage are a tensor of their own, and those of later stages are not looked at: a
    stage is computed, and learned, as if it were the last that there is, to the bit. So the first
    is the model without edges.
    """

    def __init__(self, *, num_classes: int, stages: int) -> None:
        super().__init__()
        self.embedding_shape = num_classes, stages
        self.weights = nn.ParameterList(
            torch.zeros(num_classes, num_classes) for _ in range(stages)
        )
        self.bias = nn.Parameter(torch.zeros(num_classes))

    @property
    def module(self) -> nn.Module:
        """All weights: this module."""
        return self

    def decode(self, embeddings: Tensor, stage: int) -> Tensor:
        """(B, num_classes, stages) -> (B, num_classes); stages after this one are not read."""
        logits = [each.contiguous() for each in embeddings[:, :, : stage + 1].unbind(dim=2)]
        scores = logits[stage] + self.bias  # (B, num_classes)
        for known, weight in zip(logits, self.weights, strict=False):
            scores = scores + known @ weight.T
        return scores
