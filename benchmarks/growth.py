"""Time and memory of building, opening, releasing and sampling, from 1 M to 124 M directed edges.

    python -m benchmarks.growth            print the table; --small for a quick look
    python -m benchmarks.growth --write    and keep it, with its picture, in benchmarks/growth.md

Graphs are alike but for their size: 50 directed edges a node, random ids. Each piece of work is a
process of its own, so that its memory is its own; what is mapped from files counts.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.page import SHARE, command, log, machine, options, publish
from benchmarks.release_ways import NOISE_STD, unit_messages
from benchmarks.synthetic import synthetic_graph
from benchmarks.timing import Timing

from vesper.drawing.sheet import Curve, Panel, draw_sheet
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.sampling.sampler import Sampler
from vesper.graph.schedule import IndependentDraws
from vesper.mechanism.aggregations.partition import noisy_rows
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.release import NEIGHBOR_SUM

SIZES = (1_000_000, 4_000_000, 16_000_000, 62_000_000, 124_000_000)
"""Directed edges."""

DEGREE, WIDTH, TURNS = 50, 47, 3
BATCH_SIZE, FAN_OUT, NUM_LAYERS, BATCHES = 512, 20, 2, 40


@dataclass(frozen=True)
class WorkCost:
    """One piece of work on one graph."""

    work: str
    edges: int
    seconds: float
    peak_bytes: int
    resting_bytes: int


def build(folder: Path) -> tuple[float, DataHoldings]:
    timed = Timing()
    data = timed.clock(lambda: open_data(folder))
    return timed.best(), data


def release(folder: Path) -> tuple[float, DataHoldings]:
    data, timed, noise = open_data(folder), Timing(), NoiseSource.from_os()
    messages = unit_messages(data.graph.num_nodes, WIDTH)
    for _ in range(1 + TURNS):  # the first compiles and faults pages in
        timed.clock(
            lambda: noisy_rows(
                NEIGHBOR_SUM, data.graph, messages, None, noise=noise, noise_std=NOISE_STD
            )
        )
    return min(timed.wall[1:]), data


def sample(folder: Path) -> tuple[float, DataHoldings]:
    data, timed = open_data(folder), Timing()
    sampler = Sampler(data.graph, num_layers=NUM_LAYERS, max_degree=FAN_OUT, seed=0)
    nodes = np.arange(data.graph.num_nodes)
    size = min(BATCH_SIZE, len(nodes))
    schedule = IndependentDraws(nodes, batch_size=size, num_steps=BATCHES, seed=0)
    for step, roots in enumerate(schedule):
        timed.clock(partial(sampler.sample, roots, step=step))
    return timed.median(), data


WORK: dict[str, Callable[[Path], tuple[float, DataHoldings]]] = {
    "build": build,
    "open again": build,
    "release": release,
    "sample": sample,
}
"""In order: the first makes the graph from its tables, the others map it."""


GROWS = ("build", "release")
"""Work that looks at every edge."""


def write_tables(num_directed: int, folder: Path) -> int:
    """Write the tables of a graph as a user has them; give how many directed edges it has."""
    num_nodes = num_directed // DEGREE
    graph = synthetic_graph(num_nodes, num_directed // 2)
    sources = np.repeat(np.arange(num_nodes), np.diff(graph.indptr))
    once = sources < graph.neighbors
    folder.mkdir()
    edges = {"src": sources[once], "dst": graph.neighbors[once].astype(np.int64)}
    pq.write_table(pa.table(edges), folder / "edges.parquet")
    nodes = {"id": np.arange(num_nodes), "x": np.zeros(num_nodes, dtype=np.float32)}
    pq.write_table(pa.table(nodes), folder / "nodes.parquet")
    return len(graph.neighbors)


def measure_work(work: str, folder: Path, edges: int) -> WorkCost:
    """Do a piece of work in a process of its own."""
    log(f"{edges:,} directed edges: {work}")
    words = [sys.executable, "-m", "benchmarks.growth", "--one", work, str(folder)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{work} at {edges:,} edges: ended with {done.returncode}")
    return WorkCost(work=work, edges=edges, **json.loads(done.stdout))


def peak_bytes() -> int:
    """Most that this program has held: what started it may have held more, and does not count."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return 1024 * int(line.split()[1])


def everything(sizes: Sequence[int]) -> Iterator[WorkCost]:
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="vesper-growth-") as name:
            edges = write_tables(size, Path(name) / "data")
            for work in WORK:
                yield measure_work(work, Path(name) / "data", edges)


def table(found: Sequence[WorkCost]) -> Iterator[str]:
    yield "| work | directed edges | seconds | ns an edge | GiB at most | bytes an edge at rest |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for work in WORK:
        for one in (each for each in found if each.work == work):
            an_edge = f"{one.seconds / one.edges * 1e9:.1f}" if work in GROWS else ""
            rest = f"{one.resting_bytes / one.edges:.2f}" if work == "build" else ""
            yield (
                f"| {work} | {one.edges / 1e6:.1f} M | {one.seconds:.3g} | {an_edge} "
                f"| {one.peak_bytes / 2**30:.2f} | {rest} |"
            )


def picture(found: Sequence[WorkCost]) -> str:
    """What a further edge takes, by size: where growth is in proportion, curves are level."""
    sizes = sorted({one.edges for one in found})
    first = {one.work: one for one in found if one.edges == sizes[0]}

    def further(work: str, color: int, worth: Callable[[WorkCost], float]) -> Curve:
        """From the smallest graph on, which is mostly what every process takes."""
        points = {
            _millions(one): (
                (worth(one) - worth(first[work])) / (one.edges - first[work].edges),
                math.nan,
            )
            for one in found
            if one.work == work and one.edges > sizes[0]
        }
        return Curve(name=work, points=points, color=color)

    batches = {
        _millions(one): (one.seconds * 1e3, math.nan) for one in found if one.work == "sample"
    }
    panels = [
        Panel(
            title="ns a further edge",
            curves=[
                further(work, k, lambda one: 1e9 * one.seconds) for k, work in enumerate(GROWS)
            ],
        ),
        Panel(
            title="bytes of memory a further edge",
            curves=[further(work, k, lambda one: one.peak_bytes) for k, work in enumerate(GROWS)],
        ),
        Panel(
            title=f"ms a batch of {BATCH_SIZE}",
            curves=[Curve(name="sample", points=batches, color=len(GROWS))],
        ),
    ]
    steps = sorted({_millions(one) for one in found})
    return draw_sheet(panels, title="Growth", steps=steps, step_name="million directed edges")


def _millions(one: WorkCost) -> float:
    return round(one.edges / 1e6) or round(one.edges / 1e6, 2)


def page(found: Sequence[WorkCost], asked: str, *, load: float) -> str:
    return "\n".join(
        [
            "# Growth: from 1 M to 124 M directed edges",
            "",
            f"Command: `{asked}`. Machine: {machine()}, load {load:.1f} before the start.",
            f"Synthetic graphs, {DEGREE} directed edges a node, random ids. *build*: two tables in "
            "Parquet to a graph in its cache. *open again*: the cache is mapped. *release*: sums "
            f"of int8 messages of width {WIDTH} with exact, secure noise, best of {TURNS}. "
            f"*sample*: {BATCH_SIZE} roots, fan-out [{FAN_OUT}, {FAN_OUT}], no replacement, median "
            f"of {BATCHES} batches. Two threads. A process each: about 0.4 GiB of its memory are "
            "the libraries.",
            "",
            *table(found),
            "",
            "![what a further edge takes](growth.svg)",
            "",
            "A further edge: from the smallest graph on, whose process takes little but what every "
            "process takes.",
            "",
        ]
    )


def main() -> None:
    parser = options(__doc__, small=f"graphs {SHARE} times smaller")
    parser.add_argument("--one", nargs=2, metavar=("WORK", "FOLDER"), help="one piece of work")
    asked = parser.parse_args()
    if asked.one:
        seconds, data = WORK[asked.one[0]](Path(asked.one[1]))
        facts = {"peak_bytes": peak_bytes(), "resting_bytes": data.graph.nbytes}
        print(json.dumps({"seconds": seconds, **facts}))
        return
    load = os.getloadavg()[0]
    sizes = [size // SHARE for size in SIZES] if asked.small else SIZES
    found = list(everything(sizes))
    if asked.write:
        Path(__file__).with_suffix(".svg").write_text(picture(found))
    publish(page(found, command(__file__), load=load), __file__, write=asked.write)


if __name__ == "__main__":
    main()
