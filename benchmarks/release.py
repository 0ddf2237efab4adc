"""The certified release of a whole graph against other neighbour sums, side by side in one run.

    python -m benchmarks.release            print the tables; --small for a quick look
    python -m benchmarks.release --write    and keep them in benchmarks/release.md

Ours sums int8 messages and adds noise; the others only sum. Contenders take turns, so that whatever
else the machine does hits all of them alike; read the ratios, not the seconds.
"""

import argparse
import os
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter, process_time, time

import numba
import numpy as np
import torch
from benchmarks.graph import machine, say
from benchmarks.graph_peers import Absent
from benchmarks.limits import random_reads_a_second
from benchmarks.release_peers import Messages, Sum, Sums, embedding_bag, plain_numba, torch_csr
from benchmarks.synthetic import synthetic_graph

from vesper.graph.graph import Graph
from vesper.mechanism.door import ChargedDoor
from vesper.mechanism.grid import STEPS, from_grid, to_grid
from vesper.mechanism.neighbor_sum import NeighborSum
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.sum_kernels import pack
from vesper.privacy.ledger import Ledger

NUM_NODES, NUM_EDGES = 2_449_029, 61_859_140  # products: 124 M directed edges
WIDTHS = (16, 47)
WIDE = 128
NOISE_STD = 2.5
OURS, SUM_ONLY, DOOR = "vesper, sum + noise", "vesper, sum alone", "vesper, whole door"
CSR = "torch CSR, float32"


@dataclass
class Contender:
    """One way to sum with a number of threads, and what was measured of it."""

    name: str
    width: int
    threads: int
    run: Sum
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def best(self) -> float:
        return min(self.wall)

    def median(self) -> float:
        return float(np.median(self.wall))


def sum_alone(graph: Graph, messages: Messages) -> Sum:
    return lambda: NeighborSum().aggregate(graph, messages, None)


def sum_and_noise(graph: Graph, messages: Messages) -> Sum:
    noise = NoiseSource.from_os()

    def run() -> Sums:
        values = NeighborSum().aggregate(graph, messages, None)
        noise.add_gaussian_to(values, scale=STEPS * NOISE_STD)
        return from_grid(values)

    return run


def whole_door(graph: Graph, messages: Messages, ledger: Ledger) -> Sum:
    door = ChargedDoor(graph, ledger=ledger, budget=None, noise=NoiseSource.from_os(), run="bench")
    floats = messages.astype(np.float32) / np.float32(STEPS)  # (num_nodes, width)
    return lambda: door.release(floats, noise_std=NOISE_STD)


WAYS: dict[str, tuple[Callable[[Graph, Messages], Sum], tuple[int, ...]]] = {
    OURS: (sum_and_noise, (1, 2)),
    SUM_ONLY: (sum_alone, (1, 2)),
    "F.embedding_bag, float32": (embedding_bag, (1, 2)),
    "plain Numba loop, int8": (plain_numba, (1,)),
}
"""What to measure at equal width, and with how many threads."""


def unit_messages(num_nodes: int, width: int) -> Messages:
    """Random directions on the grid."""
    generator = np.random.default_rng(width)
    blocks = []
    for start in range(0, num_nodes, 1 << 16):
        rows = generator.standard_normal((min(1 << 16, num_nodes - start), width), dtype=np.float32)
        blocks.append(to_grid(rows / np.linalg.norm(rows, axis=1, keepdims=True)))
    return np.concatenate(blocks)  # (num_nodes, width)


def contenders(graph: Graph, messages: dict[int, Messages], ledger: Ledger) -> Iterator[Contender]:
    for width in WIDTHS:
        for name, (way, thread_counts) in WAYS.items():
            yield from named(name, width, thread_counts, partial(way, graph, messages[width]))
        yield from named(DOOR, width, (2,), partial(whole_door, graph, messages[width], ledger))
    yield from named(CSR, WIDE, (1, 2), partial(torch_csr, graph, messages[WIDE]))


def named(
    name: str, width: int, thread_counts: tuple[int, ...], make: Callable[[], Sum]
) -> Iterator[Contender]:
    try:
        run = make()
    except Absent as absent:
        say(f"skipped {name}: {absent}")
        return
    yield from (Contender(name, width, threads, run) for threads in thread_counts)


def measure(everyone: list[Contender], turns: int) -> None:
    before = numba.get_num_threads(), torch.get_num_threads()
    for turn in range(1 + turns):  # the first compiles and faults pages in
        for one in everyone:
            say(f"turn {turn} of {turns}: {one.name}, width {one.width}, {one.threads} threads")
            numba.set_num_threads(min(one.threads, before[0]))
            torch.set_num_threads(one.threads)
            wall, cpu = perf_counter(), process_time()
            one.run()
            if turn:
                one.cpu.append(process_time() - cpu)
                one.wall.append(perf_counter() - wall)
    numba.set_num_threads(before[0])
    torch.set_num_threads(before[1])


def rows(graph: Graph, everyone: list[Contender]) -> Iterator[str]:
    ours = {(one.width, one.threads): one for one in everyone if one.name == OURS}
    for one in everyone:
        rival = ours[one.width if one.width in WIDTHS else WIDTHS[-1], one.threads]
        faster = f"{one.best() / rival.best():.1f} x / {one.median() / rival.median():.1f} x"
        rate = len(graph.neighbors) / float(np.median(one.cpu)) / 1e6
        yield (
            f"| {one.name} | {one.width} | {one.threads} | {one.best():.3g} | {one.median():.3g} "
            f"| {np.median(one.cpu):.3g} | {rate:.1f} "
            f"| {'' if one.name.startswith('vesper') else faster} |"
        )


def limit_rows(
    graph: Graph, messages: dict[int, Messages], everyone: list[Contender]
) -> Iterator[str]:
    """The sum reads one message an edge, in the order of the neighbour array."""
    for one in everyone:
        if one.name == SUM_ONLY:
            packed, stride = pack(messages[one.width])
            entries = graph.neighbors[: 1 << 20].astype(np.int64) * (stride // 8)
            reads = random_reads_a_second(
                packed.view(np.int64), threads=one.threads, entries=entries
            )
            least = len(graph.neighbors) / reads
            yield (
                f"| {one.width} | {one.threads} | {reads / 1e6:.0f} | {least:.3g} "
                f"| {one.best() / least:.1f} x |"
            )


def memory_rows(graph: Graph, messages: dict[int, Messages], ledger: Ledger) -> Iterator[str]:
    """Most memory held at once beside what goes in and what comes out."""
    for width in WIDTHS:
        for name, run, bytes_in in (
            (OURS, sum_and_noise(graph, messages[width]), 1),
            (DOOR, whole_door(graph, messages[width], ledger), 4),
        ):
            held = graph.nbytes + bytes_in * messages[width].size
            tracemalloc.start()
            out = run().nbytes
            extra = tracemalloc.get_traced_memory()[1] - out
            tracemalloc.stop()
            yield (
                f"| {name} | {width} | {held / 2**20:,.0f} | {out / 2**20:,.0f} "
                f"| {extra / 2**20:,.0f} | {extra / (held + out):.0%} |"
            )


def report(num_nodes: int, num_edges: int, turns: int, command: str) -> str:
    say(f"generating {2 * num_edges:,} directed edges")
    graph = synthetic_graph(num_nodes, num_edges)
    messages = {width: unit_messages(graph.num_nodes, width) for width in (*WIDTHS, WIDE)}
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Ledger(Path(folder) / "ledger.sqlite", clock=time)) as ledger,
    ):
        everyone = list(contenders(graph, messages, ledger))
        measure(everyone, turns)
        limits = list(limit_rows(graph, messages, everyone))
        memory = list(memory_rows(graph, messages, ledger))
    return "\n".join(
        [
            "# Release: noisy neighbour sums of a whole graph",
            "",
            f"Command: `{command}`. Machine: {machine()}, load {os.getloadavg()[0]:.1f}.",
            f"{graph.num_nodes:,} nodes, {len(graph.neighbors):,} directed edges, synthetic with "
            f"random ids; noise_std {NOISE_STD:g}; {turns} turns each.",
            "",
            f"*{OURS}*: int8 messages in, float32 sums with exact, secure noise out. *{DOOR}*: "
            "float32 messages in, rounding, checks and the charge in the ledger included. "
            f"{CSR} is compared with ours at width {WIDTHS[-1]}: what a run without privacy sums.",
            "",
            "| sum | width | threads | seconds, best | median | CPU s | M edges a CPU second "
            "| vesper (sum + noise) is faster, best / median |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            *rows(graph, everyone),
            "",
            f"Targets: at width {WIDTHS[-1]} 3 x {CSR}, and 1.5 x embedding_bag.",
            "",
            "The limit of a sum is reading one message an edge, wherever in memory it lies.",
            "",
            "| width | threads | M reads/s | least seconds | vesper, sum alone, best |",
            "| ---: | ---: | ---: | ---: | ---: |",
            *limits,
            "",
            "Target for extra memory: below 20 % of input and output.",
            "",
            "| | width | input, MiB | output, MiB | extra at most, MiB | of both |",
            "| --- | ---: | ---: | ---: | ---: | ---: |",
            *memory,
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--small", action="store_true", help="a graph 50 times smaller")
    parser.add_argument("--turns", type=int, default=5, help="turns of each")
    parser.add_argument("--write", action="store_true", help="keep the tables in release.md")
    asked = parser.parse_args()
    share = 50 if asked.small else 1
    command = " ".join(["python -m benchmarks.release", *sys.argv[1:]])
    text = report(NUM_NODES // share, NUM_EDGES // share, asked.turns, command)
    print(text)
    if asked.write:
        Path(__file__).with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
