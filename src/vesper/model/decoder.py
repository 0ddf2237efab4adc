"""The decoder at the label party: received logits of all stages to the final ones.

    output = logits_stage + MLP(logits_0, .., logits_K)

The correction starts at zero, so that the data party's newest head learns class logits.
"""

import torch
from torch import Tensor, nn


class ConcatDecoder(nn.Module):
    """Concatenate all stages, correct the newest."""

    def __init__(self, *, num_classes: int, stages: int, width: int) -> None:
        super().__init__()
        self.correction = nn.Sequential(
            nn.Linear(num_classes * stages, width), nn.ReLU(), nn.Linear(width, num_classes)
        )

    def forward(self, embeddings: Tensor, stage: int) -> Tensor:
        """(B, num_classes, stages) -> (B, num_classes)."""
        correction: Tensor = self.correction(embeddings.flatten(start_dim=1))
        return embeddings[:, :, stage] + correction

    def start_at_identity(self) -> None:
        """Make the correction zero."""
        last = self.correction[-1]
        with torch.no_grad():
            for weight in last.parameters():
                weight.zero_()
