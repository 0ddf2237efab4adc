"""Embeddings of several data parties to class scores.

    output = sum over parties k of decoder_k(embeddings_k)

In the certified plan a party sends class logits; their sum is the logarithm of a product: each has
a say on every class, and one that knows nothing of a node says nothing. All learn from the same
loss, so that each adds what the others lack. A party that has left is decoded as of the last stage
that it was there for to the end.

While training, the m-th scores are those of the m-th network of every party; one with fewer of them
begins again with its first.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from vesper.model.decoder import Decoder


class JoinedDecoder(nn.Module):
    """A decoder a party; embeddings of all parties stand side by side, flattened.

    Args:
        decoders: one a party, in order.
    """

    def __init__(self, decoders: Sequence[Decoder]) -> None:
        super().__init__()
        self.members = nn.ModuleList(decoder.module for decoder in decoders)
        self._decoders = list(decoders)
        self.shapes = [decoder.embedding_shape for decoder in decoders]
        self._widths = [width * depth for width, depth in self.shapes]
        self.embedding_shape = sum(self._widths), 1
        self._last_stages: dict[int, int] = {}

    @property
    def module(self) -> nn.Module:
        """All weights: this module."""
        return self

    def leave(self, member: int, *, last_stage: int) -> None:
        """Decode what is kept of a party as of this stage from now on."""
        self._last_stages[member] = last_stage

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
