"""The private representation extractor (PRE) of the certified plan. One batch, stop 3 of 5.

    stage 0:  logits_0 = Head_0(encoding)
    stage k:  message  = (c, sqrt(1 - c^2) unit(posterior_{k-1} - mean posterior)),   norm <= 1
              z_k      = released neighbour sum of the messages          (mechanism.release)
              logits_k = Head_k(encoding, z_1, .., z_k)

The extractor never sees an edge: z_k comes to it released, as data, and no gradient passes through
it. Messages are aligned with classes, so their width is the number of classes, whatever the width
of the encoding. The encoder learns through its own noise-free row.

Next: src/vesper/protocol/messages.py
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vesper.model.encoder import MlpEncoder


class PrivateRepresentationExtractor(nn.Module):
    """Class-aligned, progressive: one head a stage.

    Args:
        encoder: edge-free features to encodings.
        num_classes: width of logits and of the class part of messages.
        hops: number of releases; stage 0 uses none.
        degree_share: c, how much of a message is the constant that sums to the degree.
    """

    def __init__(
        self, encoder: MlpEncoder, *, num_classes: int, hops: int, degree_share: float
    ) -> None:
        super().__init__()
        self.encoder, self.hops, self.num_classes = encoder, hops, num_classes
        self.degree_share = degree_share
        self.message_width = num_classes + 1
        self.heads = nn.ModuleList(
            nn.Sequential(
                nn.Linear(encoder.width + stage * self.message_width, encoder.width),
                nn.ReLU(),
                nn.Linear(encoder.width, num_classes),
            )
            for stage in range(hops + 1)
        )

    def forward(self, features: Tensor, released: Tensor, stage: int) -> Tensor:
        """Logits of every stage so far; later stages are zero.

        Args:
            features: (B, num_features) edge-free.
            released: (B, stage * message_width) released sums, scaled; data, not a variable.
            stage: the newest stage; only its head and the encoder learn.

        Returns:
            (B, num_classes, hops + 1).
        """
        encodings = self.encoder(features)  # (B, width)
        outputs = []
        for k in range(self.hops + 1):
            if k > stage:
                outputs.append(encodings.new_zeros(len(encodings), self.num_classes))
                continue
            known = released[:, : k * self.message_width]  # (B, k * message_width)
            logits = self.heads[k](torch.cat([encodings, known], dim=1))  # (B, num_classes)
            outputs.append(logits if k == stage else logits.detach())
        return torch.stack(outputs, dim=2)  # (B, num_classes, hops + 1)

    def messages(self, logits: Tensor) -> Tensor:
        """Class-aligned messages of all nodes, (num_nodes, num_classes + 1), rows of norm <= 1.

        | row | result |
        | --- | --- |
        | posterior equal to the mean posterior | (c, 0, .., 0) |
        """
        posterior = logits.softmax(dim=1)  # (num_nodes, num_classes)
        centred = F.normalize(posterior - posterior.mean(dim=0), dim=1, eps=1e-12)
        constant = torch.full((len(logits), 1), self.degree_share)
        return torch.cat([constant, (1 - self.degree_share**2) ** 0.5 * centred], dim=1)
