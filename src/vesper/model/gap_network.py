"""The networks of GAP and ProGAP, split between the parties.

    data party    encoder: inputs -> (B, message_width)
                  base_k:  released hop k -> (B, message_width)
    label party   head of a stage: concatenated rows of the hops so far, scaled to length 1, linear

GAP sums encodings of the encoder hop after hop and trains all bases at once. ProGAP trains one base
per stage and sums what that base outputs; earlier bases stay as they are.

Perceptrons are as in the code of GAP and ProGAP: SELU, then batch normalisation, then dropout.

    hidden = Dropout(BatchNorm(SELU(W x + b)))      every layer; the last one stays W x + b if plain

Batch statistics are computed from edge-free data and released values only, so they are
post-processing.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vesper.model.encoders import initialize
from vesper.model.network_layers import BatchNorm, SeededDropout


class SeluPerceptron(nn.Module):
    """Perceptron with layers of the given widths.

    Args:
        widths: width of the input, then of each layer.
        plain_last: whether the last layer is linear.
        dropout: dropout rate while training.
        seed: seed of the masks; weights are drawn by the owner of the module.
    """

    def __init__(
        self, widths: Sequence[int], *, plain_last: bool, dropout: float, seed: int
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for k, (inputs, outputs) in enumerate(pairwise(widths)):
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
        num_inputs: width of the encoder's inputs.
        width: hidden units of the encoder.
        message_width: width of everything that is summed over neighbours.
        bases: number of hops with a base; GAP has one for hop 0 too.
        plain_last: whether encoder and bases end without an activation.
        dropout: dropout rate while training.
        seed: seed of all weights and masks.
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
    """The heads of the label party, one per stage.

    Args:
        message_width: width of each hop.
        depths: number of hops that the head of each stage sees.
        activate: whether batch normalisation and SELU precede the head, as in GAP.
        outputs: number of scores.
        seed: seed of all weights.
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
        hops = embeddings[:, :, : self._depths[stage]].flatten(start_dim=1)
        scores: Tensor = self.heads[stage](F.normalize(hops, dim=1, eps=1e-12))
        return scores


def pad_hops(hops: list[Tensor], *, depth: int) -> Tensor:
    """Stack (B, width) hops to (B, width, depth); later hops are zero."""
    return torch.stack(hops + [torch.zeros_like(hops[0])] * (depth - len(hops)), dim=2)
