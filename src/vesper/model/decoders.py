"""Decoders of the label party: from received embeddings of all layers to scores.

    concat:      output = MLP(embedding_1, .., embedding_L)
    gru ("-G"):  state_0 = 0;  state_l = GRU(embedding_l, state_{l-1}),  l = 1 .. L
                 output = MLP(state_L)
    correcting:  output = logits_stage + W (logits_0, .., logits_stage) + b,   W, b start at 0
                 for each member while training, for their mean otherwise
    joined:      output = sum over data parties k of decoder_k(embeddings_k)

In the certified plan embeddings are class logits of the stages so far, and the decoder corrects the
newest; so the data party's newest head learns class logits, which its messages need. The correction
is linear: whatever a larger decoder learned would be missing from the messages of the next hop.

Where several data parties send class logits, their sum is the logarithm of a product: each
contributes to every class, and one that knows nothing about a node contributes nothing. All learn
from the same loss, so each adds what the others lack. A party that has left is decoded as of the
last stage that it took part in to the end. While training, the m-th scores are those of the m-th
member of every party; a party with fewer members starts over with its first.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from vesper.model.encoders import initialize
from vesper.model.ensemble import member_logits


class Decoder(Protocol):
    """Anything that turns embeddings into scores."""

    @property
    def module(self) -> nn.Module:
        """All weights at the label party."""

    @property
    def embedding_shape(self) -> tuple[int, int]:
        """Width and depth of the embeddings that it decodes."""

    def decode(self, embeddings: Tensor, stage: int) -> Tensor:
        """(B, width, depth) embeddings -> (B, num_outputs) scores.

        While training, a decoder may return scores of several members, (members * B, num_outputs),
        one member after the other: each has its own loss.
        """


class ConcatDecoder(nn.Module):
    """The paper's CONCAT: concatenated layers, then an MLP."""

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

    Embeddings are mean logits of all stages, then the member offsets of the newest. Members are
    corrected alike, so the mean of their scores is the corrected mean.

    Each stage has its own weight tensor, and those of later stages are not read: a stage is
    computed and trained as if it were the last, bit for bit. So stage 0 is the model without edges.
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
        """(B, num_classes, stages - 1 + members) -> (B, num_classes), or one block per member."""
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
    """The paper's GRU decoder: one cell over all layers, then an MLP; weights fit any depth."""

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
    """One decoder per data party; embeddings of all parties are flattened and concatenated.

    Args:
        decoders: one per party, in order.
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
        """From now on, decode the stored embeddings of this party as of this stage."""
        self._last_stages[party] = last_stage

    def decode(self, embeddings: Tensor, stage: int) -> Tensor:
        """(B, sum of widths x depths, 1) -> (B, num_outputs), or one block per member."""
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
        decoder.module.eval()  # decode the mean: stored offsets may be those of another stage
        scores = decoder.decode(embeddings, min(stage, self._last_stages[party]))
        decoder.module.train(was_training)
        return scores


def _repeated(scores: Tensor, rows: int) -> Tensor:
    """Repeat blocks from the first on: (members * B, num_outputs) -> (rows, num_outputs)."""
    times = -(-rows // len(scores))
    return torch.cat([scores] * times)[:rows]
