"""The private representation extractor (PRE) of the certified plan.

    stage 0:  logits_0 = mean over members m of Head_0m(Encoder_m(x))
    stage k:  z_k      = released neighbour sum of the messages of stage k - 1   (mechanism.door)
              logits_k = mean over m of Head_km(log softmax(logits_0), z_1, .., z_k, z_1 + .. + z_k)

The extractor never sees an edge: z_k reaches it as released data, and no gradient passes through
it. Given its class, a node's features contain little about its neighbours, so the log posterior is
all that later heads need of x; they are small, which is more robust to noise than a wide head. What
neighbours repeat from hop to hop (labels, the degree) has the least noise in the sum of the
releases. Members are networks that are trained side by side, each on its own loss. They differ in
their initial weights and in what dropout leaves out, so what one has learned by chance the others
have not (docs/decisions/0018).
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from vesper.model.encoders import initialize
from vesper.model.message_rows import sum_features
from vesper.model.network_layers import SeededDropout

LOWEST_LOG = -8.0
HEAD_WIDTH = 64


MEMBER_SEED_STRIDE = 1 << 20
"""Distance between the mask seeds of two members."""


class PrivateRepresentationExtractor(nn.Module):
    """Progressive network: one small head per stage and member, on top of all releases so far.

    Args:
        encoders: one per member, from edge-free inputs to encodings.
        encoding_width: width of the encodings.
        num_classes: width of logits.
        message_width: columns of one release.
        hops: number of releases; stage 0 uses none.
        dropout: dropout rate while training.
        seed: seed of all weights and masks.
    """

    def __init__(
        self,
        encoders: Sequence[nn.Module],
        *,
        encoding_width: int,
        num_classes: int,
        message_width: int,
        hops: int,
        dropout: float,
        seed: int,
    ) -> None:
        super().__init__()
        self.encoders, self.hops = nn.ModuleList(encoders), hops
        self.num_classes, self.message_width = num_classes, message_width
        seeds = [seed + MEMBER_SEED_STRIDE * member for member in range(len(encoders))]
        # Registered before the heads, so that these weights do not depend on the number of hops.
        self.edge_free_heads = nn.ModuleList(
            nn.Sequential(SeededDropout(dropout, seed=each), nn.Linear(encoding_width, num_classes))
            for each in seeds
        )
        self.heads = nn.ModuleList(  # members of a stage are adjacent
            _head(
                num_classes + 2 * message_width * (stage if stage == 1 else stage + 1),
                num_classes,
                dropout=dropout / 2,
                seed=each + 10 * stage,
            )
            for stage in range(1, hops + 1)
            for each in seeds
        )
        initialize(self, seed)

    @property
    def num_members(self) -> int:
        """Number of networks that are averaged."""
        return len(self.encoders)

    def edge_free_logits(self, inputs: Tensor) -> Tensor:
        """Return the logits of stage 0: (B, num_inputs) -> (B, num_classes, members)."""
        pairs = zip(self.encoders, self.edge_free_heads, strict=True)
        return torch.stack([head(encoder(inputs)) for encoder, head in pairs], dim=2)

    def logits_with_releases(
        self, logits: Tensor, released: list[Tensor], scales: list[Tensor]
    ) -> Tensor:
        """Return the logits of stage k >= 1, given k releases.

        Args:
            logits: (B, num_classes) of stage 0; data, without gradient.
            released: k tensors (B, message_width); data, without gradient.
            scales: k tensors (message_width,), the scale of each column; if k > 1, one more for
                the sum of the releases.

        Returns:
            (B, num_classes, members)
        """
        stage = len(released)
        sums = released if stage == 1 else [*released, torch.stack(released).sum(dim=0)]
        parts = [logits.log_softmax(dim=1).clamp(min=LOWEST_LOG) / 2]
        parts += [sum_features(z, scale) for z, scale in zip(sums, scales, strict=True)]
        head_inputs = torch.cat(parts, dim=1)  # the same for all members
        heads = self.heads[(stage - 1) * self.num_members : stage * self.num_members]
        return torch.stack([head(head_inputs) for head in heads], dim=2)


def _head(num_inputs: int, num_classes: int, *, dropout: float, seed: int) -> nn.Sequential:
    return nn.Sequential(  # inputs are not dropped: no coordinate of a sum is redundant
        nn.Linear(num_inputs, HEAD_WIDTH),
        nn.ReLU(),
        SeededDropout(dropout, seed=seed),
        nn.Linear(HEAD_WIDTH, HEAD_WIDTH),
        nn.ReLU(),
        SeededDropout(dropout, seed=seed + 1),
        nn.Linear(HEAD_WIDTH, num_classes),
    )
