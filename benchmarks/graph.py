"""Neighbour sampling and bytes per edge, compared with other libraries in one run.

    python -m benchmarks.graph            print the tables; --small for a quick trial
    python -m benchmarks.graph --write    and write benchmarks/graph.md

Contenders take turns batch by batch, so that other load on the machine affects all of them alike;
read the ratios, not the milliseconds.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import numpy as np
from benchmarks.graph_peers import PEERS, AbsentError, Sample
from benchmarks.limits import lines_touched, random_reads_a_second
from benchmarks.page import command, log, machine, options, publish, shrink
from benchmarks.synthetic import synthetic_graph
from benchmarks.timing import Timing

from vesper.graph.graph import Graph
from vesper.graph.sampling.sampler import Sampler
from vesper.graph.schedule import IndependentDraws

BATCH_SIZE, FAN_OUT, NUM_LAYERS = 512, 20, 2
OURS = "vesper"
SLOW = "plain Python + NumPy"  # so slow that it runs one batch in twenty
SIZES = {  # nodes, undirected edges: the paper's Table 1
    "Reddit-size": (232_965, 57_307_946),
    "products-size": (2_449_029, 61_859_140),
}
EDGE_INDEX_BYTES = 16  # two int64
SAME_WORK = 0.2  # sampled edges may differ by this share: PyG does not sample a node twice


@dataclass
class Contender(Timing):
    """One sampler with a number of threads."""

    name: str
    threads: int
    sample: Sample
    edges: list[int] = field(default_factory=list)


def ours(graph: Graph, fan_outs: list[int]) -> Sample:
    samplers = {
        threads: Sampler(
            graph, num_layers=len(fan_outs), max_degree=fan_outs[0], seed=0, num_threads=threads
        )
        for threads in (1, 2)
    }
    steps = count()
    return lambda roots, threads: (
        samplers[threads].sample(roots, step=next(steps)).num_sampled_edges
    )


def contenders(graph: Graph) -> Iterator[Contender]:
    for name, (peer, thread_counts) in {OURS: (ours, (1, 2)), **PEERS}.items():
        try:
            sample = peer(graph, [FAN_OUT] * NUM_LAYERS)
        except AbsentError as absent:
            log(f"skipped {name}: {absent}")
            continue
        yield from (Contender(name, threads, sample) for threads in thread_counts)


def measure(graph: Graph, num_batches: int) -> list[Contender]:
    all_contenders = list(contenders(graph))
    schedule = IndependentDraws(
        np.arange(graph.num_nodes), batch_size=BATCH_SIZE, num_steps=num_batches, seed=0
    )
    for contender in all_contenders:
        contender.sample(schedule.batch(0), contender.threads)  # compiles, faults pages in
    for step, roots in enumerate(schedule):
        for contender in all_contenders:
            if contender.name == SLOW and step % 20:
                continue
            num_edges = contender.clock(partial(contender.sample, roots, contender.threads))
            contender.edges.append(num_edges)
    expected = np.mean(all_contenders[0].edges)
    for contender in all_contenders:
        if abs(np.mean(contender.edges) / expected - 1) > SAME_WORK:
            raise SystemExit(
                f"{contender.name} sampled {np.mean(contender.edges):.0f} edges a batch where "
                f"{OURS} sampled {expected:.0f}: not the same work, nothing to compare"
            )
    return all_contenders


def sampling_rows(name: str, all_contenders: list[Contender]) -> Iterator[str]:
    mine = {one.threads: one for one in all_contenders if one.name == OURS}
    for one in all_contenders:
        rate = sum(one.edges) / sum(one.wall) / 1e6
        faster = mine[one.threads].faster_than(one)
        yield (
            f"| {name} | {one.name} | {one.threads} | {one.best() * 1e3:.2f} "
            f"| {one.median() * 1e3:.2f} | {np.mean(one.cpu) * 1e3:.2f} | {rate:.1f} "
            f"| {'' if one.name == OURS else faster} |"
        )


def limit_row(name: str, graph: Graph, all_contenders: list[Contender]) -> str:
    roots = IndependentDraws(
        np.arange(graph.num_nodes), batch_size=BATCH_SIZE, num_steps=1, seed=0
    ).batch(0)
    sampler = Sampler(graph, num_layers=NUM_LAYERS, max_degree=FAN_OUT, seed=0)
    lines = lines_touched(graph, sampler.sample(roots, step=0))
    cells = []
    for one in all_contenders[:2]:
        reads = random_reads_a_second(graph.neighbors, threads=one.threads)
        floor = lines / reads
        cells.append(f"{reads / 1e6:.0f} | {floor * 1e3:.2f} | {one.best() / floor:.1f} x")
    return f"| {name} | {lines:,} | {' | '.join(cells)} |"


def bytes_row(name: str, graph: Graph) -> str:
    directed = len(graph.neighbors)
    return (
        f"| {name} | {graph.num_nodes:,} | {directed:,} | {graph.nbytes / directed:.2f} "
        f"| {EDGE_INDEX_BYTES} | {EDGE_INDEX_BYTES * directed / graph.nbytes:.1f} x |"
    )


def one_graph(
    name: str, num_nodes: int, num_edges: int, num_batches: int
) -> tuple[list[str], str, str]:
    """Rows of the three tables; frees graph and peers before the next graph."""
    log(f"{name}: generating {2 * num_edges:,} directed edges")
    graph = synthetic_graph(num_nodes, num_edges)
    log(f"{name}: sampling {num_batches} batches with each")
    all_contenders = measure(graph, num_batches)
    return (
        list(sampling_rows(name, all_contenders)),
        limit_row(name, graph, all_contenders),
        bytes_row(name, graph),
    )


def report(sizes: dict[str, tuple[int, int]], num_batches: int, command_line: str) -> str:
    sampling, limits, at_rest = list[str](), list[str](), list[str]()
    for name, size in sizes.items():
        rows, limit, stored = one_graph(name, *size, num_batches)
        sampling += rows
        limits.append(limit)
        at_rest.append(stored)
    return "\n".join(
        [
            "# Graph: sampling and bytes per edge",
            "",
            f"Command: `{command_line}`. Machine: {machine()}, load {os.getloadavg()[0]:.1f}.",
            f"B = {BATCH_SIZE}, fan-out {[FAN_OUT] * NUM_LAYERS}, no replacement, de-duplicated, "
            f"relabelled; synthetic graphs with random ids; {num_batches} batches each, in turns.",
            "",
            "| graph | sampler | threads | ms per batch, best | median | CPU ms, mean "
            "| M edges/s | vesper is faster, best / median |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
            *sampling,
            "",
            "The limit is random reads of the neighbour array: a batch cannot touch fewer cache "
            "lines than those that hold its sample.",
            "",
            "| graph | lines per batch | 1 thread: M reads/s | least ms | vesper, best "
            "| 2 threads: M reads/s | least ms | vesper, best |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            *limits,
            "",
            "| graph | nodes | directed edges | bytes per edge | int64 edge_index | smaller |",
            "| --- | ---: | ---: | ---: | ---: | ---: |",
            *at_rest,
            "",
        ]
    )


def main() -> None:
    parser = options(__doc__, small="graphs 50 times smaller")
    parser.add_argument("--batches", type=int, default=60, help="batches for each sampler")
    arguments = parser.parse_args()
    sizes = shrink(SIZES) if arguments.small else SIZES
    publish(report(sizes, arguments.batches, command(__file__)), __file__, write=arguments.write)


if __name__ == "__main__":
    main()
