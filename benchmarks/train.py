"""One training step of the paper's plan, compared with the same step in other libraries.

    python -m benchmarks.train            print the table; --small for a quick trial
    python -m benchmarks.train --write    and write benchmarks/train.md
    python -m benchmarks.train --certified FOLDER     train the certified plan on party folders

Ours is the step of a real run: both parties with their three calls, spectral normalisation, noise.
The others are one process without noise or accounting. Contenders take turns batch by batch, so
that other load on the machine affects all of them alike; read the ratios, not the milliseconds.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from benchmarks.graph_peers import AbsentError
from benchmarks.page import command, log, machine, options, publish, shrink
from benchmarks.synthetic import synthetic_graph
from benchmarks.timing import Timing
from benchmarks.train_peers import PEERS, Step, Task
from numpy.typing import NDArray

from vesper.graph.schedule import IndependentDraws
from vesper.mechanism.sampled.layers import LayerNoise, SampledGraph
from vesper.method.baselines.sampled import SampledRepresentation
from vesper.model.decoders import ConcatDecoder
from vesper.model.encoders import MlpEncoder
from vesper.model.feature_scaling import FeatureScaling, Inputs
from vesper.model.message_passing import LayerSpec, PerturbedMessagePassing
from vesper.model.objective import Classification
from vesper.party.data_party import DataParty
from vesper.party.label_party import LabelParty
from vesper.protocol.messages import Purpose
from vesper.session.config import load_config
from vesper.simulation.simulate import simulate

BATCH_SIZE, MAX_DEGREE, NUM_LAYERS, WIDTH = 256, 20, 2, 128
NUM_INPUTS, NUM_CLASSES = 200, 47  # products: 100 features, two views of each
SIZES = {"products-size": (2_449_029, 61_859_140)}  # nodes, undirected edges
OURS = "vesper, paper plan"


@dataclass
class Contender(Timing):
    """One implementation of a step."""

    name: str
    step: Step


def our_step(task: Task, *, noise: LayerNoise | None) -> Step:
    """A step by the three calls of a session, without the wire."""
    encoder = MlpEncoder(task.inputs.shape[1], width=task.width, dropout=0.0, seed=0)
    layers = LayerSpec(
        width=task.width, num_layers=task.num_layers, exact=False, noise=noise, seed=0
    )
    extractor = PerturbedMessagePassing(encoder, layers, truncated=False)
    graph = SampledGraph(
        task.graph,
        aggregator="gin",
        num_layers=task.num_layers,
        max_degree=task.max_degree,
        min_degree=1,
        seed=0,
    )
    data_party = DataParty(
        SampledRepresentation(extractor, inputs=FixedInputs(task.inputs), graph=graph),
        learning_rate=0.001,
        weight_decay=0.0,
    )
    decoder = ConcatDecoder(
        embedding_width=task.width,
        depth=task.num_layers,
        width=task.width,
        outputs=task.num_classes,
        seed=0,
    )
    objective = Classification(task.labels.numpy(), task.num_classes)
    label_party = LabelParty(objective, decoder, learning_rate=0.001, weight_decay=0.0, patience=1)
    no_posteriors = np.zeros((0, task.num_classes), dtype=np.float32)
    data_party.receive_roster(
        np.arange(len(task.labels)), no_posteriors, num_nodes=len(task.labels)
    )
    data_party.begin_stage(0)
    label_party.begin_stage(0)

    def step(roots: NDArray[np.int64]) -> None:
        embeddings = data_party.embed_batch(roots, purpose=Purpose.TRAIN)
        data_party.learn(label_party.learn(embeddings, roots))

    return step


OUR_STEPS: dict[str, Callable[[Task], Step]] = {
    OURS: lambda task: our_step(task, noise=LayerNoise(noise_std=20.0, seed=0)),
    "vesper, no noise": lambda task: our_step(task, noise=None),
}


def contenders(task: Task) -> Iterator[Contender]:
    for name, make in {**OUR_STEPS, **PEERS}.items():
        try:
            yield Contender(name, make(task))
        except AbsentError as absent:
            log(f"skipped {name}: {absent}")


class FixedInputs(Inputs):
    """Precomputed inputs: all contenders train on the same ones, and nothing needs scaling."""

    def __init__(self, inputs: torch.Tensor) -> None:
        first = inputs[:1].numpy()
        super().__init__(first, FeatureScaling(first))
        self._inputs, self.width = inputs, inputs.shape[1]

    def rows(self, nodes: NDArray[np.int64]) -> torch.Tensor:
        return self._inputs[torch.from_numpy(nodes)]


def task_of(num_nodes: int, num_edges: int) -> Task:
    generator = torch.Generator().manual_seed(0)
    return Task(
        graph=synthetic_graph(num_nodes, num_edges),
        inputs=torch.randn(num_nodes, NUM_INPUTS, generator=generator),
        labels=torch.randint(NUM_CLASSES, (num_nodes,), generator=generator),
        num_classes=NUM_CLASSES,
        width=WIDTH,
        max_degree=MAX_DEGREE,
        num_layers=NUM_LAYERS,
    )


def measure(task: Task, num_batches: int) -> list[Contender]:
    all_contenders = list(contenders(task))
    schedule = IndependentDraws(
        np.arange(task.graph.num_nodes), batch_size=BATCH_SIZE, num_steps=num_batches + 1, seed=0
    )
    for contender in all_contenders:
        contender.step(schedule.batch(num_batches))  # compiles, faults pages in
    for number in range(num_batches):
        roots = schedule.batch(number)
        for contender in all_contenders:
            contender.clock(partial(contender.step, roots))
    return all_contenders


def rows(name: str, all_contenders: list[Contender]) -> Iterator[str]:
    mine = all_contenders[0]
    for one in all_contenders:
        walls = mine.faster_than(one, digits=2)
        cpu = f"{one.median_cpu() / mine.median_cpu():.2f} x"
        yield (
            f"| {name} | {one.name} | {one.best() * 1e3:.1f} | {one.median() * 1e3:.1f} "
            f"| {one.median_cpu() * 1e3:.1f} | {'' if one is mine else walls} "
            f"| {'' if one is mine else cpu} |"
        )


def report(sizes: dict[str, tuple[int, int]], num_batches: int, command_line: str) -> str:
    lines = list[str]()
    for name, size in sizes.items():
        log(f"{name}: generating {2 * size[1]:,} directed edges")
        task = task_of(*size)
        log(f"{name}: {num_batches} steps with each")
        lines += rows(name, measure(task, num_batches))
    return "\n".join(
        [
            "# Training: a step of the paper's plan",
            "",
            f"Command: `{command_line}`. Machine: {machine()}, {torch.get_num_threads()} threads, "
            f"load {os.getloadavg()[0]:.1f}.",
            f"GIN, L = {NUM_LAYERS}, B = {BATCH_SIZE}, D = {MAX_DEGREE}, width {WIDTH}, "
            f"{NUM_INPUTS} inputs, {NUM_CLASSES} classes; synthetic graph with random ids; "
            f"{num_batches} steps each, in turns. Ratios above 1: ours is faster.",
            "",
            "| graph | step | ms, best | median | CPU ms, median "
            "| relative to the paper plan, wall best / median | CPU |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
            *lines,
            "",
        ]
    )


def certified(folder: Path) -> str:
    """Train the certified plan once, from folders on disk."""
    with tempfile.TemporaryDirectory() as scratch:
        result = simulate(folder, load_config(None, {"method": "certified"}), Path(scratch) / "run")
    return (
        f"certified plan on {folder.name}: {result.seconds:.0f} s, "
        f"{result.peak_memory_bytes / 2**30:.2f} GiB at most for both parties in one process, "
        f"{result.metric} {result.test:.2f}"
    )


def main() -> None:
    parser = options(__doc__, small="a graph 50 times smaller")
    parser.add_argument("--batches", type=int, default=30, help="steps for each contender")
    parser.add_argument(
        "--certified", type=Path, metavar="FOLDER", help="party folders to train on"
    )
    arguments = parser.parse_args()
    if arguments.certified:
        print(certified(arguments.certified))
        return
    sizes = shrink(SIZES) if arguments.small else SIZES
    publish(report(sizes, arguments.batches, command(__file__)), __file__, write=arguments.write)


if __name__ == "__main__":
    main()
