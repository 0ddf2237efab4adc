"""The data party (A): encode, extract, charge, perturb. One batch, stop 2 of 5.

    begin_stage(k):  charge the ledger, then release hop k for every node, once
    release(roots):  embeddings of the roots from released values; nothing new is spent
    learn(grads):    one optimiser step; gradients stop at the released values

Next: src/vesper/model/pre.py
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.graph.features import Features
from vesper.graph.graph import Graph
from vesper.mechanism.grid import to_grid
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.release import release
from vesper.model.pre import PrivateRepresentationExtractor
from vesper.privacy.account import Account
from vesper.privacy.events import GaussianRelease
from vesper.protocol.digest import digest_of
from vesper.protocol.messages import Embeddings, Gradients, Purpose

ROWS = 1 << 14
"""Nodes encoded at a time when all of them are needed."""


@dataclass(frozen=True)
class Spending:
    """How this party pays for releases."""

    account: Account
    event: GaussianRelease
    noise: NoiseSource
    run: str


class DataParty:
    """Holds graph, features, encoder and extractor; speaks in `Embeddings`."""

    def __init__(
        self,
        graph: Graph,
        features: Features,
        extractor: PrivateRepresentationExtractor,
        *,
        spending: Spending | None,
        learning_rate: float,
        weight_decay: float,
    ) -> None:
        self._graph, self._features, self._extractor = graph, features, extractor
        self._spending = spending
        self._learning_rate, self._weight_decay = learning_rate, weight_decay
        self._mean, self._scale = _moments(features)
        width = extractor.message_width * extractor.hops
        self._released = torch.zeros(len(features), width)  # (num_nodes, hops * message_width)
        self._roster: NDArray[np.int64] = np.arange(len(features))
        self._stage = self._step = 0
        self._sent: Tensor | None = None
        self._optimizer = self._new_optimizer()

    def meet(self, roster: NDArray[np.int64]) -> None:
        """Take the label party's roster: roots are rows of it, `roster[row]` is the node."""
        self._roster = roster

    def begin_stage(self, stage: int) -> None:
        """Release hop `stage` for all nodes, from the posteriors of the stage before."""
        if stage > 0:
            spending = self._spending
            if spending is None:
                raise ValueError("a party without an account has no stage above 0")
            messages = to_grid(self._extractor.messages(self._all_logits()).numpy())
            receipt = spending.account.charge(spending.event, None, run=spending.run)
            released = release(  # (num_nodes, message_width)
                self._graph,
                messages,
                None,
                event=spending.event,
                receipt=receipt,
                fingerprint=spending.account.graph,
                noise=spending.noise,
            )
            scale = np.sqrt(np.square(released).mean(axis=0)) + 1e-6  # post-processing
            at = (stage - 1) * self._extractor.message_width
            self._released[:, at : at + released.shape[1]] = torch.from_numpy(released / scale)
        self._stage = stage
        self._optimizer = self._new_optimizer()
        self.keep()

    def keep(self) -> None:
        """Keep the weights as they are: the label party has found them best so far."""
        self._kept = copy.deepcopy(self._extractor.state_dict())

    def restore(self) -> None:
        """Go back to the weights kept last."""
        self._extractor.load_state_dict(self._kept)

    def release(self, roots: NDArray[np.int64], *, purpose: Purpose) -> Embeddings:
        """Embed the roots; they are kept until their gradients come."""
        training = purpose is Purpose.TRAIN
        self._extractor.train(training)
        with torch.set_grad_enabled(training):
            embeddings = self._embed(self._roster[roots])  # (B, num_classes, stages)
        self._sent = embeddings if training else None
        self._step += 1
        return Embeddings(
            step=self._step,
            purpose=purpose,
            roots_digest=digest_of(roots),
            values=embeddings.detach().numpy(),
        )

    def learn(self, gradients: Gradients) -> None:
        """Take one step with the gradients of the embeddings sent last."""
        if self._sent is None or gradients.step != self._step:
            raise ValueError("gradients without embeddings")
        self._optimizer.zero_grad()
        torch.autograd.backward([self._sent], [torch.from_numpy(gradients.values)])
        self._optimizer.step()
        self._sent = None

    def _embed(self, nodes: NDArray[np.int64]) -> Tensor:
        features = torch.from_numpy(self._features[nodes].astype(np.float32))
        scaled = (features - self._mean) / self._scale  # (B, num_features)
        released = self._released[torch.from_numpy(nodes)]
        embeddings: Tensor = self._extractor(scaled, released, self._stage)
        return embeddings

    @torch.no_grad()
    def _all_logits(self) -> Tensor:
        self._extractor.eval()
        blocks = [self._embed(nodes)[:, :, self._stage] for nodes in self._blocks()]
        return torch.cat(blocks)  # (num_nodes, num_classes)

    def _blocks(self) -> Iterator[NDArray[np.int64]]:
        for start in range(0, len(self._features), ROWS):
            yield np.arange(start, min(start + ROWS, len(self._features)))

    def _new_optimizer(self) -> torch.optim.Adam:
        return torch.optim.Adam(
            self._extractor.parameters(), lr=self._learning_rate, weight_decay=self._weight_decay
        )


def _moments(features: Features) -> tuple[Tensor, Tensor]:
    """Mean and scale of each feature over all nodes: edge-free."""
    mean = np.mean(features, axis=0, dtype=np.float64)  # (num_features,)
    square = np.zeros_like(mean)
    for start in range(0, len(features), ROWS):
        square += np.square(features[start : start + ROWS] - mean).sum(axis=0)
    scale = np.sqrt(square / len(features))
    scale[scale == 0] = 1.0
    return torch.from_numpy(mean.astype(np.float32)), torch.from_numpy(scale.astype(np.float32))
