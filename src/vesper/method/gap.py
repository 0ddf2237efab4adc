"""GAP (Sajadmanesh et al. 2023): aggregation perturbation, one release a hop, all at once.

    stage 0   train encoder and a head, edge-free;   h_0 = unit rows of the encodings
    between   h_k = unit rows of door.release(h_{k-1}),   k = 1 .. hops
    stage 1   train a base for every h_k and one head over all of them

Constants of the authors' code: 16-wide encodings, SELU, batch normalisation, Adam 0.01, 100 epochs
a stage; ours: scaled inputs, and stopping by validation.
"""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from vesper.graph.features import Features
from vesper.mechanism.door import Door
from vesper.method.claimed import noise_of_sums
from vesper.method.method import Promise, Sizes
from vesper.method.released_hops import ReleasedHops, expect_published_encoder
from vesper.method.settings import Config
from vesper.model.hop_network import HopDecoder, HopNetwork, pad
from vesper.model.scaling import Scaling
from vesper.party.representation import Nodes, Representation

PUBLISHED: Mapping[str, object] = {
    "epochs": 100,
    "patience": 20,
    "learning_rate": 0.01,
    "weight_decay": 0.0,
    "dropout": 0.0,
    "label_messages": False,
}
HOPS = 2


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

    @torch.no_grad()
    def _encodings_of_all(self) -> Tensor:
        self._network.eval()
        encodings = torch.cat([self._encode(nodes) for nodes in self._blocks()])
        return F.normalize(encodings, dim=1, eps=1e-12)  # (num_nodes, message_width)


class GapMethod:
    """Edges only through `Door.release`, all hops between two stages."""

    name = "gap"
    defaults: Mapping[str, object] = PUBLISHED

    def promise(self, config: Config, sizes: Sizes) -> Promise:
        """Split the budget over the hops."""
        expect_published_encoder(config)
        return noise_of_sums(config, sizes, releases=config.privacy.hops or HOPS)

    def stages(self, config: Config, sizes: Sizes) -> int:
        """Encoder, then classifier."""
        return 2

    def data_side(
        self, config: Config, sizes: Sizes, *, features: Features, door: Door
    ) -> Representation:
        """Encoder and bases, on releases."""
        run, promise = config.run, self.promise(config, sizes)
        scaling = Scaling(features)
        network = HopNetwork(
            scaling.width,
            width=run.width,
            message_width=run.message_width,
            bases=len(promise.noise_stds) + 1,
            plain_last=True,
            dropout=run.dropout,
            seed=run.seed,
        )
        return GapRepresentation(
            network, scaling=scaling, features=features, door=door, noise_stds=promise.noise_stds
        )

    def label_side(self, config: Config, sizes: Sizes) -> HopDecoder:
        """A head on encodings, then one on all hops."""
        hops = config.privacy.hops or HOPS
        return HopDecoder(
            message_width=config.run.message_width,
            depths=(1, hops + 1),
            activate=True,
            outputs=sizes.num_classes,
            seed=config.run.seed + 1,
        )
