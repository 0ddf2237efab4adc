"""Measures of a cell: settings and party folders in, numbers out.

A measure is a function that another process can import by name. Measures that need packages above
this one are passed in by callers.
"""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from vesper.method.settings import Config


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Numbers measured for a cell; metrics in percent."""

    plan: str
    metric: str
    validation: float | None = None
    test: float | None = None
    histogram: tuple[float, ...] | None = None
    chosen_stage: int | None = None


Measure = Callable[[Config, Path, Path], Measurement]
"""Function of settings, a folder with data/ and label/, and a new folder to write into.

Next to the new folder, cells of one study may leave files that other cells can use.
"""


def training(config: Config, folder: Path, out: Path) -> Measurement:
    """Train with the code of `vesper simulate`; cells with an equal stage 0 compute it once."""
    from vesper.simulation.simulate import simulate
    from vesper.simulation.stage0_cache import Stage0Cache

    result = simulate(folder, config, out, stage0_cache=Stage0Cache(out.parent / "stage-0"))
    return Measurement(
        plan=result.privacy.plan,
        metric=result.metric,
        validation=result.validation,
        test=result.test,
        chosen_stage=result.chosen_stage,
    )


def degrees(config: Config, folder: Path, out: Path) -> Measurement:
    """Release a certified degree histogram at epsilon."""
    return _degrees(config, folder, out, as_paper=False)


def degrees_as_paper(config: Config, folder: Path, out: Path) -> Measurement:
    """Release a degree histogram with the paper's noise, which costs twice the claimed epsilon."""
    return _degrees(config, folder, out, as_paper=True)


def _degrees(config: Config, folder: Path, out: Path, *, as_paper: bool) -> Measurement:
    from vesper.graph.holdings import open_data
    from vesper.mechanism.degree_histogram import cost_of, release_histogram
    from vesper.mechanism.door import open_graph_account
    from vesper.mechanism.noise import NoiseSource
    from vesper.privacy.ledger.graph_name import SIMULATED_GRAPH
    from vesper.privacy.ledger.store import Ledger

    event = cost_of(config.privacy.epsilon, as_paper=as_paper)
    graph = open_data(folder / "data").graph
    out.mkdir()
    with closing(Ledger(out / "ledger.sqlite", clock=time.time)) as ledger:
        account = open_graph_account(graph, SIMULATED_GRAPH, ledger=ledger, simulated=True)
        histogram = release_histogram(
            graph,
            event=event,
            receipt=account.charge(event, None, run="study"),
            account=account.graph,
            noise=NoiseSource.for_simulation(config.run.seed),
            as_paper=as_paper,
        )
    return Measurement(
        plan="paper" if as_paper else "certified",
        metric="nodes of each degree",
        histogram=histogram.counts,
    )


MEASURES: dict[str, Measure] = {
    "training": training,
    "degrees": degrees,
    "degrees-as-paper": degrees_as_paper,
}
