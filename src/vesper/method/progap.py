"""ProGAP (Sajadmanesh and Gatica-Perez 2024): one release a stage, each stage on top of the last.

    stage 0   x_0 = base_0(features),                          edge-free
    stage k   x_k = base_k(door.release(unit rows of x_{k-1}))
              head_k over x_0 .. x_k side by side (jumping knowledge)

Earlier bases are frozen, which cost the authors 0.4 to 1.2 points and makes x_{k-1} data. Constants
as in `gap`.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.method.claimed import noise_of_sums
from vesper.method.gap import HOPS, PUBLISHED
from vesper.method.method import Promise, Sizes
from vesper.method.released_hops import ReleasedHops, expect_published_encoder
from vesper.method.settings import Config
from vesper.model.hop_network import HopDecoder, HopNetwork, pad
from vesper.model.scaling import Scaling
from vesper.party.representation import Nodes, Representation


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


class ProgapMethod:
    """Edges only through `Door.release`, one hop a stage."""

    name = "progap"
    defaults: Mapping[str, object] = PUBLISHED

    def promise(self, config: Config, sizes: Sizes) -> Promise:
        """Split the budget over the hops."""
        expect_published_encoder(config)
        return noise_of_sums(config, sizes, releases=config.privacy.hops or HOPS)

    def stages(self, config: Config, sizes: Sizes) -> int:
        """One more than releases."""
        return (config.privacy.hops or HOPS) + 1

    def data_side(
        self, config: Config, sizes: Sizes, *, features: Features, door: Door
    ) -> Representation:
        """Bases, on releases."""
        run, promise = config.run, self.promise(config, sizes)
        scaling = Scaling(features)
        network = HopNetwork(
            scaling.width,
            width=run.width,
            message_width=run.message_width,
            bases=len(promise.noise_stds),
            plain_last=False,
            dropout=run.dropout,
            seed=run.seed,
        )
        return ProgapRepresentation(
            network, scaling=scaling, features=features, door=door, noise_stds=promise.noise_stds
        )

    def label_side(self, config: Config, sizes: Sizes) -> HopDecoder:
        """One head a stage."""
        return HopDecoder(
            message_width=config.run.message_width,
            depths=range(1, self.stages(config, sizes) + 1),
            activate=False,
            outputs=sizes.num_classes,
            seed=config.run.seed + 1,
        )
