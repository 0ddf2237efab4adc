"""Cost of a worker's share, by the size of the message table: the numbers of docs/scale.md.

    an edge:   summing random rows of a table of a given size, 47 or 3 entries each
    a draw:    one entry of noise
    a node:    its logits from 100 features, width 128

All are CPU seconds on one thread, the best of several turns.
"""

from collections.abc import Callable, Iterator
from time import process_time

import numba
import numpy as np
import torch
from benchmarks.page import log

from vesper.mechanism.aggregations.grid import padded_rows
from vesper.mechanism.aggregations.neighbor_sum import sums_of_rows
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.model.edge_free_inference import edge_free_logits_of_rows
from vesper.model.encoders import EncoderShape, make_encoder
from vesper.model.feature_scaling import FeatureScaling
from vesper.model.pre import PrivateRepresentationExtractor

WIDTH, NARROW = 47, 3
TABLES = (1_000_000, 5_000_000, 20_000_000)
"""Numbers of nodes with a message in the table."""

DEGREES = (50, 200)
EDGES = 20_000_000
DRAWS = 20_000_000
NODES, FEATURES, ENCODING = 1 << 14, 100, 128
TURNS = 4


def cost_rows(share: int = 1) -> Iterator[str]:
    """Yield lines of the page; tables and work are `share` times smaller."""
    threads = numba.get_num_threads(), torch.get_num_threads()
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    yield "| work | size | ns, CPU |"
    yield "| --- | ---: | ---: |"
    for width, table in [*((WIDTH, table) for table in TABLES), (NARROW, TABLES[-1])]:
        for degree in DEGREES:
            size, cost = edge_cost(table // share, degree, EDGES // share, width=width)
            yield (
                f"| an edge, width {width}, {degree} per row | table of {size / 2**20:,.0f} MiB "
                f"| {cost:.1f} |"
            )
    yield f"| a draw of noise | | {draw_cost(DRAWS // share):.1f} |"
    yield f"| logits of a node | {FEATURES} features | {node_cost(NODES // share):,.0f} |"
    numba.set_num_threads(threads[0])
    torch.set_num_threads(threads[1])


def edge_cost(num_nodes: int, degree: int, num_edges: int, *, width: int) -> tuple[int, float]:
    """Bytes of the table, and nanoseconds per edge."""
    log(f"a table of {num_nodes:,} nodes, {degree} edges per row")
    messages = np.ones((num_nodes, width), dtype=np.int8)
    num_rows = num_edges // degree
    rng = np.random.default_rng(0)
    neighbors = rng.integers(0, num_nodes, (num_rows, degree), dtype=np.int32)
    neighbors.sort(axis=1)
    indptr = degree * np.arange(num_rows + 1)
    for array in (messages, neighbors, indptr):
        array.setflags(write=False)  # read-only, as workers have them
    flat, rows = neighbors.reshape(-1), padded_rows(messages)
    seconds = _best(lambda: sums_of_rows(indptr[:-1], indptr[1:], flat, width, rows))
    return rows.nbytes, 1e9 * seconds / len(flat)


def draw_cost(count: int) -> float:
    """Nanoseconds per draw."""
    values, source = np.zeros(count, dtype=np.int32), NoiseSource.from_os()
    return 1e9 * _best(lambda: source.add_gaussian_to(values, scale=160.0)) / count


def node_cost(count: int) -> float:
    """Nanoseconds per node of the edge-free pass."""
    features = np.random.default_rng(0).standard_normal((count, FEATURES), dtype=np.float32)
    scaling = FeatureScaling(features)
    extractor = extractor_for(scaling)
    return 1e9 * _best(lambda: edge_free_logits_of_rows(extractor, scaling, features)) / count


def extractor_for(scaling: FeatureScaling) -> PrivateRepresentationExtractor:
    """An extractor of the usual size."""
    shape = EncoderShape(
        num_inputs=scaling.width,
        num_features=FEATURES,
        steps=None,
        width=ENCODING,
        dropout=0.5,
        seed=1,
    )
    return PrivateRepresentationExtractor(
        [make_encoder("mlp", shape)],
        encoding_width=ENCODING,
        num_classes=WIDTH,
        message_width=WIDTH + 1,
        hops=2,
        dropout=0.5,
        seed=2,
    ).eval()


def _best(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(1 + TURNS):  # the first compiles
        start = process_time()
        work()
        seconds.append(process_time() - start)
    return min(seconds[1:])
