"""Releases on workers of a Ray cluster on this machine, compared with the same in this process.

    python -m benchmarks.ray            print the table; --small for a quick trial
    python -m benchmarks.ray --write    and write benchmarks/ray.md

Both sum int8 messages of all nodes and add exact, secure noise. A new cluster is started for each
number of workers. This process (one thread, two threads) and the workers take turns, so that other
load on the machine affects all of them alike; read the ratios, not the seconds.
"""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import numba
import numpy as np
import torch
from benchmarks.page import SHARE, command, log, machine, options, publish
from benchmarks.ray_costs import FEATURES, WIDTH, cost_rows, extractor_for
from benchmarks.release_ways import NOISE_STD, unit_messages
from benchmarks.synthetic import synthetic_graph
from benchmarks.timing import Timing

from vesper.engine.engine import Call, Engine, using
from vesper.engine.ray_engine import RayEngine
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.grid import Messages, stride_of
from vesper.mechanism.aggregations.partition import noisy_rows
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.release import NEIGHBOR_SUM
from vesper.model.edge_free_inference import (
    ROWS_PER_BLOCK,
    edge_free_logits_of_all,
    edge_free_logits_of_rows,
)
from vesper.model.feature_scaling import FeatureScaling, Inputs
from vesper.model.pre import PrivateRepresentationExtractor

DEGREE = 50
"""Directed edges per node, as in products."""

EDGES_PER_NODE_OF_PASS = 300
"""Edges of the largest graph per node of the edge-free pass."""

SIZES = (1_000_000, 10_000_000, 60_000_000)
"""Numbers of directed edges."""

WORKERS = (1, 2, 4)
THREADS = (1, 2)


@dataclass
class Work:
    """A graph, mapped from its files like that of an opened folder, and messages."""

    graph: Graph
    messages: Messages

    def release(self) -> None:
        noisy_rows(
            NEIGHBOR_SUM,
            self.graph,
            self.messages,
            None,
            noise=NoiseSource.from_os(),
            noise_std=NOISE_STD,
        )


@dataclass
class Measurement:
    """All turns with one number of workers on one graph."""

    edges: int
    nodes: int
    workers: int
    ray: Timing
    here: dict[int, Timing]
    """Timing in this process, by number of threads."""

    def row(self) -> str:
        one, two = self.here[1], self.here[2]
        return (
            f"| {self.edges / 1e6:.0f} M | {self.workers} "
            f"| {self.ray.best():.3g} / {self.ray.median():.3g} "
            f"| {one.best():.3g} / {one.median():.3g} | {two.best():.3g} / {two.median():.3g} "
            f"| {self.ray.faster_than(one, digits=2)} "
            f"| {self.ray.median_cpu():.3g} | {one.median_cpu():.3g} "
            f"| {self.ray.median_cpu() / one.median_cpu():.2f} x |"
        )


def work_of(num_directed: int, folder: Path) -> Work:
    log(f"generating {num_directed:,} directed edges")
    num_nodes = num_directed // DEGREE
    graph = synthetic_graph(num_nodes, num_directed // 2)
    np.save(folder / "indptr.npy", graph.indptr)
    np.save(folder / "neighbors.npy", graph.neighbors)
    mapped = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("indptr", "neighbors")]
    return Work(Graph(*mapped), unit_messages(num_nodes, WIDTH))


def measure(work: Work, engine: Engine, turns: int) -> Measurement:
    most = numba.get_num_threads()
    here, ray = {threads: Timing() for threads in THREADS}, Timing()
    for turn in range(1 + turns):  # the first compiles, faults pages in and sends rows
        log(f"  turn {turn} of {turns}")
        for threads, timed in here.items():
            numba.set_num_threads(min(threads, most))
            timed.clock(work.release)
        before = worker_seconds(engine)
        with using(engine):
            ray.clock(work.release)
        ray.cpu[-1] += worker_seconds(engine) - before
    numba.set_num_threads(most)
    for timed in (ray, *here.values()):
        del timed.wall[0], timed.cpu[0]
    return Measurement(
        edges=len(work.graph.neighbors),
        nodes=work.graph.num_nodes,
        workers=engine.num_workers,
        ray=ray,
        here=here,
    )


@dataclass
class Pass:
    """The edge-free pass over nodes whose features are mapped from their file."""

    inputs: Inputs
    extractor: PrivateRepresentationExtractor
    rows: list[str] = field(default_factory=list)

    def measure(self, engine: Engine, turns: int) -> None:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # like a worker
        here, ray = Timing(), Timing()
        for _ in range(1 + turns):  # the first imports torch at the workers
            here.clock(self.here)
            before = worker_seconds(engine)
            ray.clock(partial(edge_free_logits_of_all, engine, self.extractor, self.inputs))
            ray.cpu[-1] += worker_seconds(engine) - before
        torch.set_num_threads(threads)
        for timed in (ray, here):
            del timed.wall[0], timed.cpu[0]
        self.rows.append(
            f"| {engine.num_workers} | {ray.best():.3g} / {ray.median():.3g} "
            f"| {here.best():.3g} / {here.median():.3g} | {ray.faster_than(here, digits=2)} "
            f"| {ray.median_cpu():.3g} | {here.median_cpu():.3g} "
            f"| {ray.median_cpu() / here.median_cpu():.2f} x |"
        )

    def here(self) -> None:
        for start in range(0, self.inputs.num_nodes, ROWS_PER_BLOCK):
            features = self.inputs.features[start : start + ROWS_PER_BLOCK]
            edge_free_logits_of_rows(self.extractor, self.inputs.scaling, features)


def pass_of(num_nodes: int, folder: Path) -> Pass:
    random_features = np.random.default_rng(0).standard_normal(
        (num_nodes, FEATURES), dtype=np.float32
    )
    np.save(folder / "features.npy", random_features)
    features = np.load(folder / "features.npy", mmap_mode="r")
    inputs = Inputs(features, FeatureScaling(features))
    return Pass(inputs, extractor_for(inputs.scaling))


def worker_seconds(engine: Engine) -> float:
    """CPU seconds of all workers since they started."""
    calls = [Call(worker, process_time, ()) for worker in range(engine.num_workers)]
    return float(sum(seconds for _, seconds in engine.results(calls)))


def measure_releases(
    sizes: tuple[int, ...], turns: int, starts: dict[int, float], passes: list[Pass]
) -> Iterator[Measurement]:
    with tempfile.TemporaryDirectory() as name:
        works = []
        passes.append(pass_of(sizes[-1] // EDGES_PER_NODE_OF_PASS, Path(name)))
        for size in sizes:
            folder = Path(name) / str(size)
            folder.mkdir()
            works.append(work_of(size, folder))
        for workers in WORKERS:
            log(f"{workers} workers")
            started = perf_counter()
            with RayEngine(num_workers=workers) as engine:
                starts[workers] = perf_counter() - started
                for work in works:
                    yield measure(work, engine, turns)
                passes[0].measure(engine, turns)


def report(sizes: tuple[int, ...], turns: int, command_line: str, *, share: int = 1) -> str:
    costs = list(cost_rows(share))
    starts: dict[int, float] = {}
    load = os.getloadavg()[0]
    passes: list[Pass] = []
    unsorted = measure_releases(sizes, turns, starts, passes)
    measurements = sorted(unsorted, key=lambda each: (each.edges, each.workers))
    largest = measurements[-1]
    table, out = largest.nodes * stride_of(WIDTH), largest.nodes * WIDTH * 4
    started = ", ".join(f"{seconds:.1f} s for {n}" for n, seconds in starts.items())
    return "\n".join(
        [
            "# Ray: a release on workers compared with the same in this process",
            "",
            f"Command: `{command_line}`. Machine: {machine()}, load {load:.1f} before the start, "
            f"{os.getloadavg()[0]:.1f} at the end. Width {WIDTH}, {DEGREE} directed edges per "
            f"node, random ids, noise_std {NOISE_STD:g}, {turns} turns each.",
            "",
            "Wall-clock seconds are best turn / median turn; CPU seconds, of this process and all "
            "workers, are medians. A worker has one thread. Four workers on two cores show what "
            "too many cost. On a busy machine read CPU seconds: waiting for a core costs none.",
            "",
            "| directed edges | workers | Ray, s | 1 thread here, s | 2 threads here, s "
            "| Ray is faster than 1 thread | Ray, CPU s | 1 thread here, CPU s | Ray costs |",
            "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            *(each.row() for each in measurements),
            "",
            f"Time to start a cluster and its workers: {started}; once per run.",
            "",
            f"Data moved at the largest size: {table / 2**20:,.0f} MiB of messages, one copy per "
            f"machine, and {out / 2**20:,.0f} MiB of results. Rows of the graph are read from its "
            "files.",
            "",
            f"The edge-free pass over {passes[0].inputs.num_nodes:,} nodes, {FEATURES} features:",
            "",
            "| workers | Ray, s | 1 thread here, s | Ray is faster | Ray, CPU s "
            "| 1 thread here, CPU s | Ray costs |",
            "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            *passes[0].rows,
            "",
            "Cost of a worker's share, on one thread; the estimates in [scale](../docs/scale.md) "
            "use it:",
            "",
            *costs,
            "",
        ]
    )


def main() -> None:
    parser = options(__doc__, small=f"graphs {SHARE} times smaller")
    parser.add_argument("--turns", type=int, default=5, help="turns of each contender")
    arguments = parser.parse_args()
    share = SHARE if arguments.small else 1
    sizes = tuple(size // share for size in SIZES)
    text = report(sizes, arguments.turns, command(__file__), share=share)
    publish(text, __file__, write=arguments.write)


if __name__ == "__main__":
    main()
