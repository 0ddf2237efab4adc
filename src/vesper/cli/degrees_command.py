"""`vesper degrees`: a private degree histogram, charged to the ledger."""

import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vesper.cli.console import print_json, print_line, print_warning, progress_display

if TYPE_CHECKING:
    from vesper.mechanism.degree_histogram import DegreeHistogram


def degrees(
    folder: Annotated[Path, typer.Argument(help="Folder with data/, or the data party's folder.")],
    epsilon: Annotated[float, typer.Option(help="Cost of the histogram.")] = 0.1,
    graph: Annotated[
        str | None,
        typer.Option(help="Name of the graph, to which its budget belongs; needed."),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Ledger to charge; default: one per user.")
    ] = None,
    as_paper: Annotated[
        bool, typer.Option(help="Use the paper's noise, which costs twice the stated epsilon.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Release a private degree histogram, and suggest settings."""
    from vesper.graph.holdings import open_data
    from vesper.mechanism.degree_histogram import cost_of, release_histogram
    from vesper.mechanism.door import open_graph_account
    from vesper.mechanism.noise import NoiseSource
    from vesper.privacy.ledger.graph_name import expect_graph_name
    from vesper.privacy.ledger.ledger_file import default_ledger
    from vesper.privacy.ledger.overlap_report import describe_overlaps, warn_owner
    from vesper.privacy.ledger.store import Ledger

    event = cost_of(epsilon, as_paper=as_paper)  # refuses bad numbers before a ledger is created
    name = expect_graph_name(graph)
    inner = folder / "data" if (folder / "data").is_dir() else folder
    with progress_display() as progress:
        edges = open_data(inner, progress=progress).graph
    with closing(Ledger(ledger or default_ledger(), clock=time.time)) as opened:
        account = open_graph_account(edges, name, ledger=opened, simulated=False)
        warn_owner(print_warning, partial(describe_overlaps, opened, name))
        histogram = release_histogram(
            edges,
            event=event,
            receipt=account.charge(event, None, run="degrees"),
            account=name,
            noise=NoiseSource.from_os(),
            as_paper=as_paper,
        )
    advice = advise(histogram)
    if as_json:
        print_json(
            {
                "counts": list(histogram.counts),
                "epsilon": epsilon,
                "spent_epsilon": histogram.epsilon,
                "mean_degree_at_least": histogram.mean_degree_at_least,
                "isolated_share": histogram.isolated_share,
                "as_paper": as_paper,
                "graph": name,
                "ledger": str(opened.path),
                "advice": advice,
            }
        )
        return
    print_line("\n".join(bars(histogram.counts)))
    if as_paper:
        print_line(
            f"As in the paper: scale 2 / {epsilon:g} per bin. One edge changes four bins by one, "
            f"not two, so this cost epsilon {histogram.epsilon:g}."
        )
    print_line(advice)
    print_line(f"charged epsilon {histogram.epsilon:g} to graph '{name}' in {opened.path}")


def advise(histogram: "DegreeHistogram") -> str:
    """Describe in one line how dense the graph is, and what to try."""
    import math

    mean = histogram.mean_degree_at_least
    nodes = max(sum(histogram.counts), 2.0)
    above = sum(histogram.counts[6:]) / nodes
    if mean > math.log(nodes):
        kind, hint = (
            "dense",
            "Sums stand out from the noise: try two hops, with a small degree share",
        )
    elif mean > 5:
        kind, hint = "medium", "Try one and two hops, with a moderate degree share"
    else:
        kind, hint = "sparse", "Try one hop, with a large degree share; more hops add noise"
    minimum = 10 if mean > math.log(nodes) else 5 if mean > 5 else 3
    return (
        f"{kind}: mean degree at least {mean:.1f}, {histogram.isolated_share:.0%} isolated, "
        f"{above:.0%} above 5. {hint}. For a clamped GCN try a minimum degree of {minimum}; "
        f"the plain sum is best at every degree."
    )


BAR_STARTS = (*range(10), 10, 15, 20, 30, 40)
"""First degree of each bar: single degrees up to 9, then ranges; --json has all degrees."""


def bars(counts: Sequence[float]) -> list[str]:
    """Draw the histogram: degrees, number of nodes, and a bar for the nodes *per degree*."""
    from rich.console import Console

    console = Console()
    last = len(counts) - 1
    width = max(20, console.width - 24)
    block = "█" if "utf" in console.encoding else "#"
    stops = [*BAR_STARTS[1:], last]
    groups = [(a, b, sum(counts[a:b])) for a, b in zip(BAR_STARTS, stops, strict=True)]
    groups.append((last, last + 1, counts[last]))
    longest = max(*(count / (b - a) for a, b, count in groups), 1.0)
    lines = []
    for start, stop, count in groups:
        single = str(start) if stop == start + 1 else f"{start}-{stop - 1}"
        label = f">= {last}" if start == last else single
        bar = block * round(width * max(count, 0.0) / (stop - start) / longest)
        lines.append(f"{label:>6} {count:>12,.0f} {bar}".rstrip())
    return lines
