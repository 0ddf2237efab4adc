"""Logits of all nodes from their features, computed by the workers of an engine.

    logits[v] = mean over members of Head_0(Encoder(scaled x[v])), in blocks of ROWS_PER_BLOCK nodes

Each worker reads its rows of the features and receives the weights. Blocks are the same as in one
process, and so are the results, except that float sums within a block depend on how many threads
share it.
"""

import numpy as np
import torch
from torch import Tensor

from vesper.engine.array_rows import Array, MappedRows, as_array, rows_for
from vesper.engine.engine import Call, Engine
from vesper.model.ensemble import mean_logits
from vesper.model.feature_scaling import FeatureScaling, Inputs
from vesper.model.pre import PrivateRepresentationExtractor

ROWS_PER_BLOCK = 1 << 14
"""Nodes per block."""


def edge_free_logits_of_all(
    engine: Engine, extractor: PrivateRepresentationExtractor, inputs: Inputs
) -> Tensor:
    """Return the stage-0 logits of all nodes with the current weights: (num_nodes, num_classes)."""
    network, scaling = engine.share(extractor), engine.share(inputs.scaling)
    starts = range(0, inputs.num_nodes, ROWS_PER_BLOCK)
    calls = []
    for number, start in enumerate(starts):
        worker = number * engine.num_workers // len(starts)
        stop = min(start + ROWS_PER_BLOCK, inputs.num_nodes)
        rows = rows_for(engine, worker, inputs.features, start, stop)
        calls.append(Call(worker, edge_free_logits_of_rows, (network, scaling, rows)))
    logits = torch.empty(inputs.num_nodes, extractor.num_classes)
    for number, values in engine.results(calls):
        start = starts[number]
        logits[start : start + len(values)] = torch.from_numpy(values.copy())
    return logits


@torch.no_grad()
def edge_free_logits_of_rows(
    extractor: PrivateRepresentationExtractor, scaling: FeatureScaling, features: MappedRows | Array
) -> Array:
    """Return the stage-0 logits of a block of nodes, at a worker: (rows, num_classes)."""
    inputs = Inputs(as_array(features), scaling, max_bytes=0)
    return mean_logits(extractor.edge_free_logits(inputs.rows(np.arange(inputs.num_nodes)))).numpy()
