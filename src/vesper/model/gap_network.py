"""The networks of GAP and ProGAP, split between the parties.

    data party    encoder: inputs -> (B, message_width)
                  base_k:  released hop k -> (B, message_width)
    label party   head of a stage: rows of the hops so far, side by side, to length 1, linear

GAP sums encodings of the encoder hop after hop and trains all bases at once. ProGAP trains one base
a stage and sums what that base makes; earlier bases stay as they are.

A perceptron as in the code of GAP and ProGAP: SELU, then batch normalisation, then dropout.

    hidden = Dropout(BatchNorm(SELU(W x + b)))      every layer; the last one stays W x + b if plain

Batch statistics are made of edge-free data and released values only, so they are post-processing.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vesper.model.dropout import SeededDropout
from vesper.model.encoders import initialize
from vesper.model.norms import BatchNorm


class SeluPerceptron(nn.Module):
    """Layers of the given widths.

    Args:
        widths: of the input, of each layer.
        plain_last: the last layer is linear.
        dropout: while training.
        seed: of the masks; weights are drawn by whoever owns the module.
    """

    def __init__(
        self, widths: Sequence[int], *, plain_last: bool, dropout: float, seed: int
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for k, (inputs, outputs) in enumerate(zip(widths, widths[1:], strict=False)):
            layers.append(nn.Linear(inputs, outputs))
            if not plain_last or k < len(widths) - 2:
                layers += [
                    nn.SELU(),
                    BatchNorm(outputs),
                    SeededDropout(dropout, seed=seed + k),
                ]
        self.layers = nn.Sequential(*layers)

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, widths[0]) -> (B, widths[-1])."""
        outputs: Tensor = self.layers(inputs)
        return outputs


class HopNetwork(nn.Module):
    """All weights of the data party.

    Args:
        num_inputs: of the encoder.
        width: hidden units of the encoder.
        message_width: width of everything that is summed over neighbours.
        bases: how many hops have a base; GAP has one for hop 0 too.
        plain_last: whether encoder and bases end without an activation.
    """

    def __init__(
        self,
        num_inputs: int,
        *,
        width: int,
        message_width: int,
        bases: int,
        plain_last: bool,
        dropout: float,
        seed: int,
    ) -> None:
        super().__init__()
        self.message_width = message_width
        self.encoder = SeluPerceptron(
            (num_inputs, width, message_width), plain_last=plain_last, dropout=dropout, seed=seed
        )
        self.bases = nn.ModuleList(
            SeluPerceptron(
                (message_width, message_width),
                plain_last=plain_last,
                dropout=dropout,
                seed=seed + 10 * (k + 1),
            )
            for k in range(bases)
        )
        initialize(self, seed)


class HopDecoder(nn.Module):
    """One head a stage, at the label party.

    Args:
        message_width: of each hop.
        depths: how many hops the head of each stage sees.
        activate: batch normalisation and SELU before the head, as GAP has it.
        outputs: scores.
    """

    def __init__(
        self, *, message_width: int, depths: Sequence[int], activate: bool, outputs: int, seed: int
    ) -> None:
        super().__init__()
        self._depths = tuple(depths)
        self.embedding_shape = message_width, max(depths)
        self.heads = nn.ModuleList(
            nn.Sequential(
                *([BatchNorm(message_width * depth), nn.SELU()] if activate else []),
                nn.Linear(message_width * depth, outputs),
            )
            for depth in depths
        )
        initialize(self, seed)

    @property
    def module(self) -> nn.Module:
        """All weights: this module."""
        return self

    def decode(self, embeddings: Tensor, stage: int) -> Tensor:
        """(B, message_width, hops + 1) -> (B, outputs)."""
        known = embeddings[:, :, : self._depths[stage]].flatten(start_dim=1)
        scores: Tensor = self.heads[stage](F.normalize(known, dim=1, eps=1e-12))
        return scores


def pad_hops(hops: list[Tensor], *, depth: int) -> Tensor:
    """Stack (B, width) hops to (B, width, depth); those to come are zero."""
    return torch.stack(hops + [torch.zeros_like(hops[0])] * (depth - len(hops)), dim=2)
