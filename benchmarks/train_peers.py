"""One training step of a two-layer GIN in other libraries: no noise, no accounting, one process.

All share the encoder, the decoder, the table of inputs and Adam with ours. The layer is
normalize(ReLU(W (own + sum over sampled neighbours))) with its raw weight, without the spectral
normalisation of ours. A peer that is not installed raises `AbsentError`.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from typing import Any

import numpy as np
import torch
from benchmarks.graph_peers import AbsentError
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from vesper.graph.graph import Graph
from vesper.graph.sampling.sampler import Sampler
from vesper.graph.sampling.subgraph import Block
from vesper.model.decoders import ConcatDecoder
from vesper.model.encoders import MlpEncoder

Step = Callable[[NDArray[np.int64]], None]
"""Function that does one training step for given roots."""


@dataclass(frozen=True)
class Task:
    """The task that all contenders train on."""

    graph: Graph
    inputs: Tensor  # (num_nodes, num_inputs)
    labels: Tensor  # (num_nodes,)
    num_classes: int
    width: int
    max_degree: int
    num_layers: int


class Network(nn.Module):
    """Encoder, given layers and decoder."""

    def __init__(self, task: Task, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.encoder = MlpEncoder(task.inputs.shape[1], width=task.width, dropout=0.0, seed=0)
        self.layers = nn.ModuleList(layers)
        self.decoder = ConcatDecoder(
            embedding_width=task.width,
            depth=task.num_layers,
            width=task.width,
            outputs=task.num_classes,
            seed=0,
        )

    def forward(self, inputs: Tensor, blocks: Sequence[Any], num_roots: int) -> Tensor:
        """Scores of the roots."""
        rows, roots = F.normalize(self.encoder(inputs)), []
        for layer, block in zip(self.layers, blocks, strict=True):
            rows = F.normalize(F.relu(layer(block, rows)))
            roots.append(rows[:num_roots])
        return self.decoder.decode(torch.stack(roots, dim=2), 0)


def dgl_step(task: Task) -> Step:
    """DGL's NeighborSampler and GINConv."""
    if find_spec("dgl") is None:
        raise AbsentError("dgl is not installed")
    os.environ.setdefault(
        "DGLBACKEND", "pytorch"
    )  # otherwise it writes a file into the home folder
    library, layers = import_module("dgl"), import_module("dgl.nn.pytorch")
    arrays = task.graph.indptr, task.graph.neighbors.astype(np.int64), np.empty(0, dtype=np.int64)
    whole = library.graph(("csc", tuple(torch.from_numpy(array) for array in arrays)))
    sampler = library.dataloading.NeighborSampler([task.max_degree] * task.num_layers)
    network = Network(
        task,
        [
            layers.GINConv(nn.Linear(task.width, task.width, bias=False), "sum")
            for _ in range(task.num_layers)
        ],
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=0.001)

    def step(roots: NDArray[np.int64]) -> None:
        nodes, _, blocks = sampler.sample(whole, torch.from_numpy(roots))
        scores = network(task.inputs[nodes], blocks, len(roots))
        _learn(optimizer, scores, task.labels[torch.from_numpy(roots)])

    return step


class IndexAdd(nn.Module):
    """A GIN layer that sums with `index_add`."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width, bias=False)

    def forward(self, block: Block, rows: Tensor) -> Tensor:
        """Map (num_senders, width) to (num_receivers, width)."""
        receivers = torch.from_numpy(np.repeat(np.arange(block.num_receivers), block.degrees))
        sent = rows[torch.from_numpy(block.indices)]  # (num_sampled_edges, width)
        summed = rows[: block.num_receivers].index_add(0, receivers, sent)
        mapped: Tensor = self.linear(summed)
        return mapped


def torch_step(task: Task) -> Step:
    """Plain PyTorch for the layers, our sampler for the neighbourhoods."""
    sampler = Sampler(task.graph, num_layers=task.num_layers, max_degree=task.max_degree, seed=0)
    network = Network(task, [IndexAdd(task.width) for _ in range(task.num_layers)])
    optimizer = torch.optim.Adam(network.parameters(), lr=0.001)
    steps = count()

    def step(roots: NDArray[np.int64]) -> None:
        subgraph = sampler.sample(roots, step=next(steps))
        inputs = task.inputs[torch.from_numpy(subgraph.nodes)]
        scores = network(inputs, subgraph.layers, len(roots))
        _learn(optimizer, scores, task.labels[torch.from_numpy(roots)])

    return step


def _learn(optimizer: torch.optim.Optimizer, scores: Tensor, labels: Tensor) -> None:
    loss = F.cross_entropy(scores, labels)
    optimizer.zero_grad()
    torch.autograd.backward([loss])
    optimizer.step()


PEERS: dict[str, Callable[[Task], Step]] = {
    "DGL NeighborSampler + GINConv": dgl_step,
    "PyTorch index_add, our sampler": torch_step,
}
