"""Logits of all nodes from their features, shared out over the workers of an engine.

    logits[v] = Head_0(Encoder(scaled x[v])),    in blocks of `ROWS` nodes

Each worker reads its rows of the features and gets the weights. Blocks are those of one process, so
the numbers are the same but for how many threads share a block: its sums are floats.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from vesper.engine.array_rows import Array, MappedRows, opened, rows_for
from vesper.engine.engine import Call, Engine
from vesper.model.pre import PrivateRepresentationExtractor
from vesper.model.scaling import Inputs, Scaling

ROWS = 1 << 14
"""Nodes at a time."""

BLOCKS_A_CALL = 4


def edge_free_of_all(
    engine: Engine, extractor: PrivateRepresentationExtractor, inputs: Inputs
) -> Tensor:
    """Stage 0 of all nodes, as the extractor is: (num_nodes, num_classes)."""
    network, scaling = engine.share(extractor), engine.share(inputs.scaling)
    pieces = list(_cut(range(inputs.num_nodes), BLOCKS_A_CALL * ROWS))
    calls = []
    for number, piece in enumerate(pieces):
        worker = number * engine.num_workers // len(pieces)
        rows = rows_for(engine, worker, inputs.features, piece.start, piece.stop)
        calls.append(Call(worker, edge_free_rows, (network, scaling, rows)))
    logits = torch.empty(inputs.num_nodes, extractor.num_classes)
    for number, values in engine.results(calls):
        piece = pieces[number]
        logits[piece.start : piece.stop] = torch.from_numpy(values.copy())
    return logits


@torch.no_grad()
def edge_free_rows(
    extractor: PrivateRepresentationExtractor, scaling: Scaling, features: MappedRows | Array
) -> Array:
    """Stage 0 of some nodes, at the worker: (rows, num_classes)."""
    inputs = Inputs(opened(features), scaling, most_bytes=0)
    logits = [
        extractor.edge_free(inputs.of(np.array(block)))
        for block in _cut(range(inputs.num_nodes), ROWS)
    ]
    return torch.cat(logits).numpy()


def _cut(rows: range, size: int) -> Iterator[range]:
    for start in range(rows.start, rows.stop, size):
        yield range(start, min(start + size, rows.stop))
