"""GAP (Sajadmanesh et al. 2023): aggregation perturbation, one release a hop, all at once.

stage 0   train encoder and a head, edge-free;   h_0 = unit rows of the encodings
between   h_k = unit rows of door.release(h_{k-1}),   k = 1 .. hops
stage 1   train a base for every h_k and one head over all of them
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from vesper.method.released_hops import ReleasedHops, ReleasedHopsMethod
from vesper.model.hop_network import pad
from vesper.party.representation import Nodes


class GapRepresentation(ReleasedHops):
    """Encodings at stage 0; a base of every released hop at stage 1."""

    def begin_stage(self, stage: int) -> None:
        """Before stage 1, release hop after hop."""
        if stage == 1:
            self._hops = [self._encodings_of_all()]
            while len(self._hops) < self.depth:
                self._hops.append(F.normalize(self._release(self._hops[-1]), dim=1, eps=1e-12))

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """(B, message_width, hops + 1)."""
        if not self._hops:
            return pad([F.normalize(self._encode(nodes), dim=1, eps=1e-12)], depth=self.depth)
        rows = torch.from_numpy(nodes)
        hops = [base(hop[rows]) for base, hop in zip(self._network.bases, self._hops, strict=True)]
        return pad(hops, depth=self.depth)

    def settle(self, stage: int) -> None:
        """Stage 0 is decoded from encodings, not from bases of them."""
        if stage == 0:
            self._hops = []

    @torch.no_grad()
    def _encodings_of_all(self) -> Tensor:
        self._network.eval()
        encodings = torch.cat([self._encode(nodes) for nodes in self._blocks()])
        return F.normalize(encodings, dim=1, eps=1e-12)  # (num_nodes, message_width)


class GapMethod(ReleasedHopsMethod):
    """All hops are released between two stages: encoder, then classifier."""

    name = "gap"
    representation = GapRepresentation
    activates_in_head = True

    def bases(self, hops: int) -> int:
        """Hop 0 has one too."""
        return hops + 1

    def heads(self, hops: int) -> tuple[int, int]:
        """One on encodings, one on all hops."""
        return 1, hops + 1
