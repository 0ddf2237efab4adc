"""Utility cost of a cheaper exchange: rounded messages, and several local updates per exchange.

    python -m benchmarks.exchange            run missing cells, print the table; --small: a trial
    python -m benchmarks.exchange --write    and write benchmarks/exchange.md
    python -m benchmarks.exchange --minutes 30      start no more cells after that time

Measured cells are in exchange.jsonl, by settings; a stopped run resumes there. Epochs and patience
are divided by the number of local updates, so that all variants take about as many steps.
"""

import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from time import monotonic

import torch
from benchmarks.page import command, log, machine, options, publish, spread
from benchmarks.result_lines import append_result, read_results

from vesper.datasets.finance import simulate_finance
from vesper.datasets.loaders.convert import convert
from vesper.method.settings import Config
from vesper.session.config import load_config
from vesper.simulation.simulate import simulate

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "shared" / "data"
FINANCE = "finance"
DATASETS = (FINANCE, "fb100_cornell", "facebook_pages")
FIRST = (("float32", 1), ("float16", 1), ("int8", 1), ("float32", 4), ("int8", 4))
OTHERS = (("float32", 2), ("int8", 2), ("float16", 2), ("float16", 4))
WIRES = ("float32", "float16", "int8")
EPOCHS, PATIENCE, WIDTH = 40, 8, 32
SEEDS, NUM_NODES = 3, 20_000


@dataclass(frozen=True)
class Result:
    """One run: metrics in percent, bytes in each direction, exchanges in training."""

    dataset: str
    nodes: int | None
    wire: str
    local_updates: int
    seed: int
    settings: str
    metric: str
    validation: float
    test: float
    bytes_to_label_party: int
    bytes_to_data_party: int
    exchanges: int

    @property
    def way(self) -> tuple[str, str, int]:
        return self.dataset, self.wire, self.local_updates


class ExchangeCounter:
    """Counts training steps from progress reports; the end of training is reported once more."""

    def __init__(self) -> None:
        self.exchanges = -1

    def __call__(self, task: str, done: int, total: int, note: str = "") -> None:
        self.exchanges += task == "training"


def config_of(wire: str, local_updates: int, seed: int, *, epochs: int) -> Config:
    """The certified plan at its default epsilon, with a small width so that cells are quick."""
    return load_config(
        None,
        {
            "wire": wire,
            "local_updates": local_updates,
            "seed": seed,
            "width": WIDTH,
            "epochs": -(-epochs // local_updates),
            "patience": -(-PATIENCE // local_updates),
        },
    )


def party_folder(dataset: str, work: Path, *, num_nodes: int) -> Path | None:
    """Make the party folders of a data set once; None if the public data set is missing."""
    out = work / dataset
    if not out.exists() and dataset == FINANCE:
        simulate_finance(out, num_nodes=num_nodes)
    elif not out.exists() and (DATA / dataset).exists():
        convert(DATA / dataset, out)
    return out if out.exists() else None


def measure(dataset: str, folder: Path, config: Config, *, nodes: int | None) -> Result:
    count = ExchangeCounter()
    with tempfile.TemporaryDirectory() as text:
        result = simulate(folder, config, Path(text) / "run", progress=count)
    run = config.run
    return Result(
        dataset=dataset,
        nodes=nodes,
        wire=run.wire,
        local_updates=run.local_updates,
        seed=run.seed,
        settings=config.contract[:16],
        metric=result.metric,
        validation=result.validation,
        test=result.test,
        bytes_to_label_party=result.bytes_to_label_party,
        bytes_to_data_party=result.bytes_to_data_party,
        exchanges=count.exchanges,
    )


def table(lines: list[Result]) -> list[str]:
    """One row per data set and variant, compared with float32 and one local update."""
    cells: dict[tuple[str, str, int], list[Result]] = defaultdict(list)
    for line in lines:
        cells[line.way].append(line)
    rows = [
        "| data set | wire | local updates | seeds | metric | validation | test | exchanges "
        "| MB to label party | MB to data party | bytes of float32, 1 |",
        "| --- | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for way in sorted(cells, key=lambda way: (way[0], way[2], WIRES.index(way[1]))):
        runs, baseline = cells[way], cells.get((way[0], "float32", 1), [])
        sent = mean(line.bytes_to_label_party for line in runs) / 1e6
        back = mean(line.bytes_to_data_party for line in runs) / 1e6
        whole = [line.bytes_to_label_party + line.bytes_to_data_party for line in baseline]
        share = f"{(sent + back) * 1e6 / mean(whole):.2f} x" if whole else "-"
        rows.append(
            f"| {way[0]} | {way[1]} | {way[2]} | {len(runs)} | {runs[0].metric} "
            f"| {spread([line.validation for line in runs])} "
            f"| {spread([line.test for line in runs])} "
            f"| {mean(line.exchanges for line in runs):.0f} | {sent:.1f} | {back:.1f} | {share} |"
        )
    return rows


def page(lines: list[Result], command_line: str, *, epochs: int) -> str:
    return "\n".join(
        [
            "# Cheaper exchange",
            "",
            f"Command: `{command_line}`. Machine: {machine()}.",
            f"Method `certified` at its default epsilon, width {WIDTH}, {epochs} epochs and a "
            f"patience of {PATIENCE}, both divided by the local updates, otherwise defaults; "
            "simulated through the same session, protocol and bytes as over the network.",
            "",
            *table(lines),
            "",
            "Metrics are means and standard deviations over seeds, in percent. "
            "Bytes are those of all frames, including roster and evaluation: evaluation embeds "
            "every validation node once per epoch, so fewer epochs send fewer of these as well. "
            "Early stopping makes the number of exchanges vary from seed to seed.",
            "",
        ]
    )


def main() -> None:
    parser = options(__doc__, small="one small data set, one seed, few epochs; nothing is stored")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="start no more cells after this time"
    )
    parser.add_argument("--work", type=Path, help="folder for party folders; default: a new one")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    started, results_path = monotonic(), HERE / "exchange.jsonl"
    epochs, nodes = (4, 2_000) if arguments.small else (EPOCHS, NUM_NODES)
    lines = [] if arguments.small else read_results(results_path, Result)
    known = {(line.dataset, line.settings) for line in lines}
    datasets, seeds = (DATASETS[:1], 1) if arguments.small else (DATASETS, SEEDS)
    wanted = [  # the most informative cells first, because a run may be stopped at any time
        (seed, *way, dataset)
        for ways in (FIRST, OTHERS)
        for some in (datasets[:2], datasets[2:])
        for seed in range(seeds)
        for way in ways
        for dataset in some
    ]
    with tempfile.TemporaryDirectory() as text:
        for seed, wire, local_updates, dataset in wanted:
            config = config_of(wire, local_updates, seed, epochs=epochs)
            if (dataset, config.contract[:16]) in known:
                continue
            if monotonic() - started > 60 * arguments.minutes:
                log("out of time; run the command again to resume")
                break
            folder = party_folder(dataset, arguments.work or Path(text), num_nodes=nodes)
            if folder is None:
                log(f"skipped {dataset}: no folder {DATA.name}/{dataset} next to the project")
                continue
            line = measure(dataset, folder, config, nodes=nodes if dataset == FINANCE else None)
            log(f"{dataset} {wire} x {local_updates}, seed {seed}: {line.test:.2f}")
            lines.append(line)
            if not arguments.small:
                append_result(results_path, line)
    publish(page(lines, command(__file__), epochs=epochs), __file__, write=arguments.write)


if __name__ == "__main__":
    main()
