"""The paper's sizes from end to end: simulated tables on disk to a trained model, both plans.

    python -m benchmarks.paper_sizes --work DIR            run missing steps, print the table
    python -m benchmarks.paper_sizes --work DIR --write    and write benchmarks/paper_sizes.md
    python -m benchmarks.paper_sizes --small               graphs 50 times smaller, nothing stored

Every step is a command that a user would type, in a separate process; time and memory are those of
that process, with both parties in it. Measured steps are in paper_sizes.jsonl, and a stopped run
resumes there. Folders in DIR are created once: about 3 GB.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.page import SHARE, command, log, machine, options, publish
from benchmarks.result_lines import append_result, read_results
from benchmarks.two_processes import run_parties

HERE = Path(__file__).parent
EPSILON = "4"
TWO_PROCESSES = "apart"
"""Step name of the certified plan in two processes, which shows the memory of each party."""


@dataclass(frozen=True)
class SimulatedSet:
    """A simulated data set, the paper's preset for it, and its size."""

    name: str
    preset: str
    nodes: int


SETS = (
    SimulatedSet("products-like", "products", 2_449_029),
    SimulatedSet("reddit-like", "reddit", 232_965),
    SimulatedSet("finance", "finance", 1_130_000),
)


@dataclass(frozen=True)
class Step:
    """One command on one data set."""

    name: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """Cost and results of a step."""

    dataset: str
    step: str
    command: str
    seconds: float
    peak_bytes: int
    facts: dict[str, Any] = field(default_factory=dict)


def steps_of(
    of: SimulatedSet, place: Path, out: Path, *, paper_epochs: int, nodes: int
) -> list[Step]:
    """Commands in order; the first creates the folders, the second reads them."""
    data, runs = str(place / of.name), out / of.name
    shared = ("--epsilon", EPSILON, "--seed", "0", "--json")
    sizes = ("--nodes", str(nodes)) if nodes else ()
    simulate = ("simulate", "--data", data)
    paper = (*simulate, "--preset", of.preset, "--set", f"epochs={paper_epochs}", *shared)
    return [
        Step("tables", ("data", of.name, "--out", data, "--seed", "0", *sizes)),
        Step("read in", ("data", "check", data, "--json")),
        Step("certified", (*simulate, "--method", "certified", *shared, "--out", f"{runs}-v")),
        Step(
            "paper-gin",
            (*paper, "--method", "paper-gin", "--out", f"{runs}-p"),
        ),
    ]


def measure_step(of: SimulatedSet, step: Step) -> Result:
    """Run a command and measure its time, memory and output."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "vesper", *step.words],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout as output:
        text = output.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"vesper {' '.join(step.words)}: ended with {process.returncode}")
    return Result(
        dataset=of.name,
        step=step.name,
        command=" ".join(["vesper", *(word.rpartition("/")[2] for word in step.words)]),
        seconds=time.perf_counter() - started,
        peak_bytes=_bytes(usage),
        facts=_facts(json.loads(text)) if "simulate" in step.words else {},
    )


def measure_two_processes(of: SimulatedSet, place: Path, out: Path) -> list[Result]:
    """Run the parties of a data set as two processes; one result each."""
    costs = run_parties(place / of.name, out / f"{of.name}-apart", epsilon=4.0, run={"epochs": 1})
    return [
        Result(
            dataset=of.name,
            step=f"{role} party {TWO_PROCESSES}",
            command=f"vesper party {role}, epsilon 4, epochs = 1",
            seconds=each.seconds,
            peak_bytes=each.peak_bytes,
        )
        for role, each in sorted(costs.items())
    ]


def _facts(result: dict[str, Any]) -> dict[str, Any]:
    names = ("metric", "test", "bytes_to_label_party", "bytes_to_data_party")
    noise = {"noise_std": result["privacy"]["noise_std"]}
    return {name: result[name] for name in names} | noise


def _bytes(usage: resource.struct_rusage) -> int:
    return int(usage.ru_maxrss) * 1024


def table(lines: Sequence[Result]) -> Iterator[str]:
    yield "| data set | step | seconds | GiB at most | MB sent | MB back | metric | noise |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for line in lines:
        facts = line.facts
        sent, back = (_mega(facts.get(f"bytes_to_{side}_party")) for side in ("label", "data"))
        metric = f"{facts['metric']} {facts['test']:.2f}" if facts else ""
        noise = f"{facts['noise_std']:.2f}" if facts else ""
        took = f"{line.seconds:.0f} | {line.peak_bytes / 2**30:.2f}"
        yield f"| {line.dataset} | {line.step} | {took} | {sent} | {back} | {metric} | {noise} |"


def _mega(count: int | None) -> str:
    return "" if count is None else f"{count / 1e6:.1f}"


def _place(line: Result) -> int:
    """Sort key: the order of data sets; steps of one stay in the order of measurement."""
    return [of.name for of in SETS].index(line.dataset)


def page(lines: Sequence[Result], command_line: str) -> str:
    commands = "\n".join(
        f"* {line.dataset}, {line.step}: `{line.command}`" for line in sorted(lines, key=_place)
    )
    return "\n".join(
        [
            "# The paper's sizes, from end to end",
            "",
            f"Command: `{command_line}`. Machine: {machine()}.",
            "",
            "Each step is a separate process with both parties in it; `data party apart` and "
            "`label party apart` are two processes that train over TLS, one epoch per stage, to "
            "measure the memory of each. `tables` simulates and writes Parquet, `read in` builds "
            "graph and features from it, later steps map them into memory, which counts as memory. "
            "Epsilon 4, seed 0: *certified* for `certified`, *claimed* by the paper's analysis for "
            "`paper-gin`, which is run with the paper's settings for the data set and the number "
            "of epochs in its command. Sent: to the label party; back: from it. Noise: standard "
            "deviation for messages of norm 1.",
            "",
            *table(sorted(lines, key=_place)),
            "",
            commands,
            "",
        ]
    )


def is_known(lines: Sequence[Result], of: SimulatedSet, step: str) -> bool:
    """Whether a step has been measured before."""
    return any((line.dataset, line.step) == (of.name, step) for line in lines)


def record(lines: list[Result], new: Sequence[Result], *, results_path: Path | None) -> None:
    """Log new results, add them to the lines and store them."""
    for line in new:
        log(f"{line.step}: {line.seconds:.0f} s, {line.peak_bytes / 2**30:.2f} GiB")
        lines.append(line)
        if results_path is not None:
            append_result(results_path, line)


def main() -> None:
    parser = options(__doc__, small=f"graphs {SHARE} times smaller; nothing is stored")
    parser.add_argument("--work", type=Path, help="folder for tables and runs; default: a new one")
    parser.add_argument("--sets", nargs="*", default=[of.name for of in SETS])
    parser.add_argument("--steps", nargs="*", help="only these steps, and the tables they need")
    parser.add_argument("--paper-epochs", type=int, default=1, help="epochs of the paper's plan")
    arguments = parser.parse_args()
    results_path = HERE / "paper_sizes.jsonl"
    lines = [] if arguments.small else read_results(results_path, Result)
    with tempfile.TemporaryDirectory(prefix="vesper-sizes-") as temporary:
        place = arguments.work or Path(temporary)
        for of in SETS:
            if of.name not in arguments.sets:
                continue
            nodes = of.nodes // SHARE if arguments.small else 0
            runs = Path(temporary)
            steps = steps_of(of, place, runs, paper_epochs=arguments.paper_epochs, nodes=nodes)
            for step in steps:
                exists = step.name == "tables" and (place / of.name).exists()
                wanted = arguments.steps is None or step.name in (
                    *arguments.steps,
                    "tables",
                    "read in",
                )
                if is_known(lines, of, step.name) or exists or not wanted:
                    continue
                log(f"{of.name}: {step.name}")
                record(
                    lines,
                    [measure_step(of, step)],
                    results_path=None if arguments.small else results_path,
                )
            wanted = arguments.steps is None or TWO_PROCESSES in arguments.steps
            if wanted and not is_known(lines, of, f"data party {TWO_PROCESSES}"):
                log(f"{of.name}: two processes")
                apart = measure_two_processes(of, place, runs)
                record(lines, apart, results_path=None if arguments.small else results_path)
    publish(page(lines, command(__file__)), __file__, write=arguments.write)


if __name__ == "__main__":
    main()
