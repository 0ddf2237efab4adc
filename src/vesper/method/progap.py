"""ProGAP (Sajadmanesh and Gatica-Perez 2024): one release a stage, each stage on top of the last.

    stage 0   x_0 = base_0(features),                          edge-free
    stage k   x_k = base_k(door.release(unit rows of x_{k-1}))
              head_k over x_0 .. x_k side by side (jumping knowledge)

Earlier bases are frozen, which cost the authors 0.4 to 1.2 points and makes x_{k-1} data.
"""

import torch
from torch import Tensor

from vesper.method.released_hops import ReleasedHops, ReleasedHopsMethod
from vesper.model.hop_network import pad
from vesper.party.representation import Nodes


class ProgapRepresentation(ReleasedHops):
    """`_hops` are the frozen x of the stages before; `_newest_sum` is the release of this one."""

    _newest_sum: Tensor | None = None  # (num_nodes, message_width), data

    def begin_stage(self, stage: int) -> None:
        """Freeze the stage before and release what it makes."""
        if stage > 0:
            self._hops.append(self._newest_of_all())
            self._newest_sum = self._release(self._hops[-1])

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """(B, message_width, hops + 1)."""
        rows = torch.from_numpy(nodes)
        return pad([*(hop[rows] for hop in self._hops), self._newest(nodes)], depth=self.depth)

    def _newest(self, nodes: Nodes) -> Tensor:
        if self._newest_sum is None:
            return self._encode(nodes)
        rows = torch.from_numpy(nodes)
        newest: Tensor = self._network.bases[len(self._hops) - 1](self._newest_sum[rows])
        return newest

    @torch.no_grad()
    def _newest_of_all(self) -> Tensor:
        self._network.eval()
        return torch.cat([self._newest(nodes) for nodes in self._blocks()])


class ProgapMethod(ReleasedHopsMethod):
    """One hop is released a stage."""

    name = "progap"
    representation = ProgapRepresentation
    activates_in_head = False

    def bases(self, hops: int) -> int:
        """One a released hop; the encoder is that of hop 0."""
        return hops

    def heads(self, hops: int) -> range:
        """One a stage, on all hops so far."""
        return range(1, hops + 2)
