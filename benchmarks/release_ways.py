"""Our sums behind the interface of the peers: alone, with noise, and through the door."""

from collections.abc import Callable

import numpy as np
from benchmarks.release_peers import Messages, Sum, Sums, embedding_bag, plain_numba

from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.grid import STEPS, from_grid, to_grid
from vesper.mechanism.aggregations.neighbor_sum import NeighborSum
from vesper.mechanism.door import ChargedDoor, open_graph_account
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.privacy.ledger.store import Ledger

NOISE_STD = 2.5
OURS, SUM_ONLY, DOOR = "vesper, sum + noise", "vesper, sum alone", "vesper, whole door"


def sum_alone(graph: Graph, messages: Messages) -> Sum:
    return lambda: NeighborSum().aggregate(graph, messages, None)


def sum_and_noise(graph: Graph, messages: Messages) -> Sum:
    noise = NoiseSource.from_os()

    def run() -> Sums:
        values = NeighborSum().aggregate(graph, messages, None)
        noise.add_gaussian_to(values, scale=STEPS * NOISE_STD)
        return from_grid(values)

    return run


def release_through_door(graph: Graph, messages: Messages, ledger: Ledger) -> Sum:
    account = open_graph_account(graph, "bench", ledger=ledger, simulated=False)
    door = ChargedDoor(graph, account=account, noise=NoiseSource.from_os(), run="bench")
    floats = messages.astype(np.float32) / np.float32(STEPS)  # (num_nodes, width)
    return lambda: door.release(floats, noise_std=NOISE_STD)


CONTENDERS: dict[str, tuple[Callable[[Graph, Messages], Sum], tuple[int, ...]]] = {
    OURS: (sum_and_noise, (1, 2)),
    SUM_ONLY: (sum_alone, (1, 2)),
    "F.embedding_bag, float32": (embedding_bag, (1, 2)),
    "plain Numba loop, int8": (plain_numba, (1,)),
}
"""Contenders at equal width, with their numbers of threads."""


def unit_messages(num_nodes: int, width: int) -> Messages:
    """Random messages of norm 1, rounded to the grid."""
    generator = np.random.default_rng(width)
    blocks = []
    for start in range(0, num_nodes, 1 << 16):
        rows = generator.standard_normal((min(1 << 16, num_nodes - start), width), dtype=np.float32)
        blocks.append(to_grid(rows / np.linalg.norm(rows, axis=1, keepdims=True)))
    return np.concatenate(blocks)  # (num_nodes, width)
