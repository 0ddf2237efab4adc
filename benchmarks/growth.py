"""Time and memory of building, opening, releasing and sampling, from 1 M to 124 M directed edges.

    python -m benchmarks.growth            print the table; --small for a quick trial
    python -m benchmarks.growth --write    and write benchmarks/growth.md with its figure

Graphs differ in size only: 50 directed edges per node, random ids. Each piece of work runs in a
separate process, so that its memory can be measured; memory mapped from files counts.
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
"""Numbers of directed edges."""

DEGREE, WIDTH, TURNS = 50, 47, 3
BATCH_SIZE, FAN_OUT, NUM_LAYERS, BATCHES = 512, 20, 2, 40


@dataclass(frozen=True)
class WorkCost:
    """Cost of one piece of work on one graph."""

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
"""Pieces of work, in order: the first builds the graph from its tables, the others map it."""


GROWS = ("build", "release")
"""Work that reads every edge."""


def write_tables(num_directed: int, folder: Path) -> int:
    """Write the tables of a graph as a user has them; return its number of directed edges."""
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
    """Measure a piece of work in a separate process."""
    log(f"{edges:,} directed edges: {work}")
    command_line = [sys.executable, "-m", "benchmarks.growth", "--one", work, str(folder)]
    done = subprocess.run(command_line, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{work} at {edges:,} edges: ended with {done.returncode}")
    return WorkCost(work=work, edges=edges, **json.loads(done.stdout))


def peak_bytes() -> int:
    """Peak memory of this program, without that of the process that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return 1024 * int(line.split()[1])


def costs_of(sizes: Sequence[int]) -> Iterator[WorkCost]:
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="vesper-growth-") as name:
            edges = write_tables(size, Path(name) / "data")
            for work in WORK:
                yield measure_work(work, Path(name) / "data", edges)


def table(costs: Sequence[WorkCost]) -> Iterator[str]:
    yield "| work | directed edges | seconds | ns per edge | GiB at most | bytes per edge at rest |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for work in WORK:
        for one in (each for each in costs if each.work == work):
            per_edge = f"{one.seconds / one.edges * 1e9:.1f}" if work in GROWS else ""
            rest = f"{one.resting_bytes / one.edges:.2f}" if work == "build" else ""
            yield (
                f"| {work} | {one.edges / 1e6:.1f} M | {one.seconds:.3g} | {per_edge} "
                f"| {one.peak_bytes / 2**30:.2f} | {rest} |"
            )


def picture(costs: Sequence[WorkCost]) -> str:
    """Draw the cost per additional edge by size; curves are level where growth is linear."""
    sizes = sorted({one.edges for one in costs})
    first = {one.work: one for one in costs if one.edges == sizes[0]}

    def marginal(work: str, color: int, value: Callable[[WorkCost], float]) -> Curve:
        """Cost per edge beyond the smallest graph, whose cost is mostly that of any process."""
        points = {
            _millions(one): (
                (value(one) - value(first[work])) / (one.edges - first[work].edges),
                math.nan,
            )
            for one in costs
            if one.work == work and one.edges > sizes[0]
        }
        return Curve(name=work, points=points, color=color)

    batches = {
        _millions(one): (one.seconds * 1e3, math.nan) for one in costs if one.work == "sample"
    }
    panels = [
        Panel(
            title="ns per additional edge",
            curves=[
                marginal(work, k, lambda one: 1e9 * one.seconds) for k, work in enumerate(GROWS)
            ],
        ),
        Panel(
            title="bytes of memory per additional edge",
            curves=[marginal(work, k, lambda one: one.peak_bytes) for k, work in enumerate(GROWS)],
        ),
        Panel(
            title=f"ms per batch of {BATCH_SIZE}",
            curves=[Curve(name="sample", points=batches, color=len(GROWS))],
        ),
    ]
    steps = sorted({_millions(one) for one in costs})
    return draw_sheet(panels, title="Growth", steps=steps, step_name="million directed edges")


def _millions(one: WorkCost) -> float:
    return round(one.edges / 1e6) or round(one.edges / 1e6, 2)


def page(costs: Sequence[WorkCost], command_line: str, *, load: float) -> str:
    return "\n".join(
        [
            "# Growth: from 1 M to 124 M directed edges",
            "",
            f"Command: `{command_line}`. Machine: {machine()}, load {load:.1f} before the start.",
            f"Synthetic graphs, {DEGREE} directed edges per node, random ids. *build*: from two "
            "Parquet tables to a graph in its cache. *open again*: the cache is mapped. *release*: "
            f"sums of int8 messages of width {WIDTH} with exact, secure noise, best of {TURNS}. "
            f"*sample*: {BATCH_SIZE} roots, fan-out [{FAN_OUT}, {FAN_OUT}], no replacement, median "
            f"of {BATCHES} batches. Two threads. Each runs in its own process, about 0.4 GiB of "
            "whose memory are the libraries.",
            "",
            *table(costs),
            "",
            "![cost per additional edge](growth.svg)",
            "",
            "Additional edges are those beyond the smallest graph, whose cost is mostly that of "
            "any process.",
            "",
        ]
    )


def main() -> None:
    parser = options(__doc__, small=f"graphs {SHARE} times smaller")
    parser.add_argument("--one", nargs=2, metavar=("WORK", "FOLDER"), help="one piece of work only")
    arguments = parser.parse_args()
    if arguments.one:
        seconds, data = WORK[arguments.one[0]](Path(arguments.one[1]))
        facts = {"peak_bytes": peak_bytes(), "resting_bytes": data.graph.nbytes}
        print(json.dumps({"seconds": seconds, **facts}))
        return
    load = os.getloadavg()[0]
    sizes = [size // SHARE for size in SIZES] if arguments.small else SIZES
    costs = list(costs_of(sizes))
    if arguments.write:
        Path(__file__).with_suffix(".svg").write_text(picture(costs))
    publish(page(costs, command(__file__), load=load), __file__, write=arguments.write)


if __name__ == "__main__":
    main()
