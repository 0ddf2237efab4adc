"""The decoder at the label party: received embeddings of all layers to class scores.

    CONCAT:  output = MLP(embedding_1, .., embedding_L)
    stage by stage:  output = logits_stage + W (logits_0, .., logits_stage) + b,   W, b start at 0
                     of each member while training, and their mean

In the certified plan embeddings are class logits of the stages so far and the decoder corrects the
newest; so the data party's newest head learns class logits, which its messages need. The correction
is linear: whatever a larger one learned, the messages of the next hop would lack.

The paper's GRU decoder ("-G"): the layers' embeddings as a sequence.

state_0 = 0;    state_l = GRU(embedding_l, state_{l-1}),  l = 1 .. L
output  = MLP(state_L)

Embeddings of several data parties to class scores.

    output = sum over parties k of decoder_k(embeddings_k)

In the certified plan a party sends class logits; their sum is the logarithm of a product: each has
a say on every class, and one that knows nothing of a node says nothing. All learn from the same
loss, so that each adds what the others lack. A party that has left is decoded as of the last stage
that it was there for to the end.

While training, the m-th scores are those of the m-th network of every party; one with fewer of them
begins again with its first.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from vesper.model.encoders import initialize
from vesper.model.ensemble import member_logits


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

    Embeddings are logits of all stages, then how members of the newest differ (`logits_by_member`). Members
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
        logits_by_member = member_logits(newest, embeddings[:, :, self._stages :])
        return torch.cat([self._corrected(each, before) for each in logits_by_member])

    def _corrected(self, newest: Tensor, before: Sequence[Tensor]) -> Tensor:
        """(B, num_classes) logits -> (B, num_classes) scores."""
        scores = newest + self.bias
        for known, weight in zip([*before, newest], self.weights, strict=False):
            scores = scores + known @ weight.T
        return scores


class GruDecoder(nn.Module):
    """One recurrent cell over the depth, then an MLP; weights are the same for any depth."""

    def __init__(
        self, *, embedding_width: int, depth: int, width: int, outputs: int, seed: int
    ) -> None:
        super().__init__()
        self.embedding_shape = embedding_width, depth
        self.cell = nn.GRUCell(embedding_width, width)
        self.layers = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs))
        initialize(self, seed)

    @property
    def module(self) -> nn.Module:
        """All weights: this module."""
        return self

    def decode(self, embeddings: Tensor, stage: int) -> Tensor:
        """(B, embedding_width, depth) -> (B, outputs), whatever the stage."""
        state = torch.zeros(len(embeddings), self.cell.hidden_size)
        for embedding in embeddings.unbind(dim=2):
            state = self.cell(embedding, state)
        scores: Tensor = self.layers(state)
        return scores


class JoinedDecoder(nn.Module):
    """A decoder a party; embeddings of all parties stand side by side, flattened.

    Args:
        decoders: one a party, in order.
    """

    def __init__(self, decoders: Sequence[Decoder]) -> None:
        super().__init__()
        self.party_decoders = nn.ModuleList(decoder.module for decoder in decoders)
        self._decoders = list(decoders)
        self.shapes = [decoder.embedding_shape for decoder in decoders]
        self._widths = [width * depth for width, depth in self.shapes]
        self.embedding_shape = sum(self._widths), 1
        self._last_stages: dict[int, int] = {}

    @property
    def module(self) -> nn.Module:
        """All weights: this module."""
        return self

    def leave(self, party: int, *, last_stage: int) -> None:
        """Decode what is kept of a party as of this stage from now on."""
        self._last_stages[party] = last_stage

    def decode(self, embeddings: Tensor, stage: int) -> Tensor:
        """(B, sum of widths x depths, 1) -> (B, num_outputs), or a block a network."""
        parts = torch.split_with_sizes(embeddings[:, :, 0], self._widths, dim=1)
        scores = [
            self._decoded(k, part.reshape(-1, *shape), stage)
            for k, (part, shape) in enumerate(zip(parts, self.shapes, strict=True))
        ]
        most = max(len(each) for each in scores)
        return torch.stack([_repeated(each, most) for each in scores]).sum(dim=0)

    def _decoded(self, party: int, embeddings: Tensor, stage: int) -> Tensor:
        decoder = self._decoders[party]
        if party not in self._last_stages:
            return decoder.decode(embeddings, stage)
        was_training = decoder.module.training
        decoder.module.eval()  # what it said last is said together: it has been in several stages
        scores = decoder.decode(embeddings, min(stage, self._last_stages[party]))
        decoder.module.train(was_training)
        return scores


def _repeated(scores: Tensor, rows: int) -> Tensor:
    """(networks * B, num_outputs) -> (rows, num_outputs), from the first again."""
    times = -(-rows // len(scores))
    return torch.cat([scores] * times)[:rows]
