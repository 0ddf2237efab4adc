"""The certified release of a whole graph, compared with other neighbour sums in one run.

    python -m benchmarks.release            print the tables; --small for a quick trial
    python -m benchmarks.release --write    and write benchmarks/release.md

Ours sums int8 messages and adds noise; the others only sum. Contenders take turns, so that other
load on the machine affects all of them alike; read the ratios, not the seconds.
"""

import os
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import time

import numba
import numpy as np
import torch
from benchmarks.graph_peers import AbsentError
from benchmarks.limits import random_reads_a_second
from benchmarks.page import SHARE, command, log, machine, options, publish
from benchmarks.release_peers import Messages, Sum, torch_csr
from benchmarks.release_ways import (
    CONTENDERS,
    DOOR,
    NOISE_STD,
    OURS,
    SUM_ONLY,
    release_through_door,
    sum_and_noise,
    unit_messages,
)
from benchmarks.synthetic import synthetic_graph
from benchmarks.timing import Timing

from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.grid import padded_rows
from vesper.privacy.ledger.store import Ledger

NUM_NODES, NUM_EDGES = 2_449_029, 61_859_140  # products: 124 M directed edges
WIDTHS = (16, 47)
WIDE = 128
CSR = "torch CSR, float32"


@dataclass
class Contender(Timing):
    """One way to sum with a number of threads."""

    name: str
    width: int
    threads: int
    run: Sum


def contenders(graph: Graph, messages: dict[int, Messages], ledger: Ledger) -> Iterator[Contender]:
    for width in WIDTHS:
        for name, (way, thread_counts) in CONTENDERS.items():
            yield from named(name, width, thread_counts, partial(way, graph, messages[width]))
        yield from named(
            DOOR, width, (2,), partial(release_through_door, graph, messages[width], ledger)
        )
    yield from named(CSR, WIDE, (1, 2), partial(torch_csr, graph, messages[WIDE]))


def named(
    name: str, width: int, thread_counts: tuple[int, ...], make: Callable[[], Sum]
) -> Iterator[Contender]:
    try:
        run = make()
    except AbsentError as absent:
        log(f"skipped {name}: {absent}")
        return
    yield from (Contender(name, width, threads, run) for threads in thread_counts)


def measure(all_contenders: list[Contender], turns: int) -> None:
    before = numba.get_num_threads(), torch.get_num_threads()
    for turn in range(1 + turns):  # the first compiles and faults pages in
        for one in all_contenders:
            log(f"turn {turn} of {turns}: {one.name}, width {one.width}, {one.threads} threads")
            numba.set_num_threads(min(one.threads, before[0]))
            torch.set_num_threads(one.threads)
            if turn:
                one.clock(one.run)
            else:
                one.run()
    numba.set_num_threads(before[0])
    torch.set_num_threads(before[1])


def rows(graph: Graph, all_contenders: list[Contender]) -> Iterator[str]:
    ours = {(one.width, one.threads): one for one in all_contenders if one.name == OURS}
    for one in all_contenders:
        rival = ours[one.width if one.width in WIDTHS else WIDTHS[-1], one.threads]
        rate = len(graph.neighbors) / one.median_cpu() / 1e6
        yield (
            f"| {one.name} | {one.width} | {one.threads} | {one.best():.3g} | {one.median():.3g} "
            f"| {one.median_cpu():.3g} | {rate:.1f} "
            f"| {'' if one.name.startswith('vesper') else rival.faster_than(one)} |"
        )


def limit_rows(
    graph: Graph, messages: dict[int, Messages], all_contenders: list[Contender]
) -> Iterator[str]:
    """Lower limit of the sum: one message is read per edge, in the order of the neighbour array."""
    for one in all_contenders:
        if one.name == SUM_ONLY:
            rows = padded_rows(messages[one.width])
            entries = graph.neighbors[: 1 << 20].astype(np.int64) * rows.shape[1]
            reads = random_reads_a_second(rows.reshape(-1), threads=one.threads, entries=entries)
            least = len(graph.neighbors) / reads
            yield (
                f"| {one.width} | {one.threads} | {reads / 1e6:.0f} | {least:.3g} "
                f"| {one.best() / least:.1f} x |"
            )


def memory_rows(graph: Graph, messages: dict[int, Messages], ledger: Ledger) -> Iterator[str]:
    """Peak memory in addition to input and output."""
    for width in WIDTHS:
        for name, run, bytes_in in (
            (OURS, sum_and_noise(graph, messages[width]), 1),
            (DOOR, release_through_door(graph, messages[width], ledger), 4),
        ):
            inputs = graph.nbytes + bytes_in * messages[width].size
            tracemalloc.start()
            out = run().nbytes
            extra = tracemalloc.get_traced_memory()[1] - out
            tracemalloc.stop()
            yield (
                f"| {name} | {width} | {inputs / 2**20:,.0f} | {out / 2**20:,.0f} "
                f"| {extra / 2**20:,.0f} | {extra / (inputs + out):.0%} |"
            )


def report(num_nodes: int, num_edges: int, turns: int, command_line: str) -> str:
    log(f"generating {2 * num_edges:,} directed edges")
    graph = synthetic_graph(num_nodes, num_edges)
    messages = {width: unit_messages(graph.num_nodes, width) for width in (*WIDTHS, WIDE)}
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Ledger(Path(folder) / "ledger.sqlite", clock=time)) as ledger,
    ):
        all_contenders = list(contenders(graph, messages, ledger))
        measure(all_contenders, turns)
        limits = list(limit_rows(graph, messages, all_contenders))
        memory = list(memory_rows(graph, messages, ledger))
    return "\n".join(
        [
            "# Release: noisy neighbour sums of a whole graph",
            "",
            f"Command: `{command_line}`. Machine: {machine()}, load {os.getloadavg()[0]:.1f}.",
            f"{graph.num_nodes:,} nodes, {len(graph.neighbors):,} directed edges, synthetic with "
            f"random ids; noise_std {NOISE_STD:g}; {turns} turns each.",
            "",
            f"*{OURS}*: int8 messages in, float32 sums with exact, secure noise out. *{DOOR}*: "
            "float32 messages in, including rounding, checks and the charge in the ledger. "
            f"{CSR} is what a run without privacy sums; it is compared with ours at width "
            f"{WIDTHS[-1]}.",
            "",
            "| sum | width | threads | seconds, best | median | CPU s | M edges per CPU second "
            "| vesper (sum + noise) is faster, best / median |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            *rows(graph, all_contenders),
            "",
            f"Targets: at width {WIDTHS[-1]} 3 x {CSR}, and 1.5 x embedding_bag.",
            "",
            "The limit of a sum is reading one message per edge, wherever it is in memory.",
            "",
            "| width | threads | M reads/s | least seconds | vesper, sum alone, best |",
            "| ---: | ---: | ---: | ---: | ---: |",
            *limits,
            "",
            "Target for additional memory: below 20 % of input and output.",
            "",
            "| | width | input, MiB | output, MiB | additional at most, MiB | of both |",
            "| --- | ---: | ---: | ---: | ---: | ---: |",
            *memory,
            "",
        ]
    )


def main() -> None:
    parser = options(__doc__, small="a graph 50 times smaller")
    parser.add_argument("--turns", type=int, default=5, help="turns of each contender")
    arguments = parser.parse_args()
    share = SHARE if arguments.small else 1
    text = report(NUM_NODES // share, NUM_EDGES // share, arguments.turns, command(__file__))
    publish(text, __file__, write=arguments.write)


if __name__ == "__main__":
    main()
