"""The paper's GRU decoder ("-G"): the layers' embeddings as a sequence.

state_0 = 0;    state_l = GRU(embedding_l, state_{l-1}),  l = 1 .. L
output  = MLP(state_L)
"""

import torch
from torch import Tensor, nn

from vesper.model.encoder import initialize


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
