"""Page that `vesper plan` prints, for people who are responsible for the data."""

import math
import shutil
import textwrap

import typer

from vesper.cli.console import print_table
from vesper.privacy.planning.node_plan import NodePlan
from vesper.privacy.planning.plan import Plan
from vesper.privacy.planning.traffic import Traffic

MAX_LINE_WIDTH = 100


def show_plan(plan: Plan, *, hops: int, refreshes: int, noise_is_given: bool) -> None:
    """Print the guarantee, the phases, what the label party can infer, and the paper's plan."""
    whole = plan.certified
    often = "once" if refreshes == 1 else f"{refreshes} times"
    hopping = "1 hop" if hops == 1 else f"{hops} hops, each"
    probe_noise = whole.probe_noise_std
    before = "" if probe_noise is None else f", after a probe with noise {probe_noise:.4g}"
    print_paragraph(
        f"{hopping} released {often} with noise std {whole.noise_std:.4g} per unit-norm message"
        f"{before}: everything that the label party ever receives about this graph is (epsilon "
        f"{whole.epsilon:.4g}, delta {whole.delta:g}) for every single edge (mu {whole.mu:.4f}).",
    )
    if probe_noise is not None and not plan.planned_traffic:
        more = (
            "epsilon larger"
            if noise_is_given
            else f"noise up to {_extra_noise_of_probe():.1%} larger"
        )
        print_paragraph(f"The size of the probe depends on --train-nodes, which may make {more}.")
    typer.echo()
    _show_phases(plan)
    typer.echo()
    _show_attack(plan)
    typer.echo()
    _show_claimed(plan)


def show_node_plan(plan: NodePlan, *, hops: int) -> None:
    """Print the noise that protects a node, by both accountants, and the paper's theorem."""
    print_table(
        f"A node with all its edges: epsilon {plan.epsilon:g}, delta {plan.delta:g}, "
        f"{hops} hop{'s' * (hops > 1)}, degrees at most {plan.max_degree}",
        ["", "noise per unit message", "epsilon that holds"],
        [
            ["certified, exact", f"{plan.noise_std:.4g}", f"{plan.epsilon:g}"],
            ["certified, Renyi orders", f"{plan.renyi_noise_std:.4g}", f"{plan.epsilon:g}"],
            ["claimed by the paper", f"{plan.claimed_noise_std:.4g}", f"{plan.true_epsilon:.4g}"],
        ],
    )
    print_paragraph(
        "Certified rows are clipped to the square root of the largest degree, a public bound: "
        "graphs that exceed it are refused. The paper clips nothing, and overlooks that the row of "
        "the node itself changes by as much as it has neighbours. A run adds a little noise for "
        "rounding, and a probe if labels are shared."
    )


def print_paragraph(text: str) -> None:
    """Print a paragraph as wide as the terminal, up to a readable width."""
    typer.echo(textwrap.fill(text, width=min(shutil.get_terminal_size().columns, MAX_LINE_WIDTH)))


def _show_phases(plan: Plan) -> None:
    phases = [p for p in plan.phases if p.releases or p.name != "degree histogram"]
    print_table(
        "What each phase costs",
        ["phase", "releases", "epsilon", "so far", "to label party", "to data party"],
        [
            [
                phase.name,
                str(phase.releases),
                f"{phase.epsilon:.4g}" if phase.releases else "free",
                f"{phase.epsilon_so_far:.4g}",
                *_sizes(phase.traffic),
            ]
            for phase in phases
        ],
    )
    print_paragraph(
        "Validation and inference on this snapshot are free: they reuse the values that training "
        "released, and release nothing new about an edge. A new snapshot of the graph has its own "
        "budget. The epsilon of a histogram, which is released first, is added in full; other "
        "releases add up by mu^2, which costs less."
    )
    if plan.planned_traffic:
        print_paragraph(
            f"A batch is {format_bytes(plan.planned_traffic.per_batch_each_way)} each way, "
            f"tensors only."
        )
    else:
        print_paragraph(
            "Give --train-nodes, --val-nodes, --nodes and --classes to see the traffic."
        )


def _extra_noise_of_probe() -> float:
    """Return the relative increase of the hops' noise with the largest possible probe."""
    from vesper.method.certified.probe_size import MAX_CONTENT_SHARE
    from vesper.method.certified.query_nodes import LABEL_REACH_SHARE

    return math.sqrt((1 - LABEL_REACH_SHARE) / (1 - LABEL_REACH_SHARE - MAX_CONTENT_SHARE)) - 1


def _show_attack(plan: Plan) -> None:
    more = plan.one_more_release
    rows = [("before anything is sent", 0.5, 0.01)]
    for name, holds in (("after this plan", plan.certified), ("with one more release", more)):
        label = f"{name}, epsilon {holds.epsilon:.4g}"
        rows.append((label, holds.attack_accuracy, holds.detection_at_one_percent))
    print_table(
        "What the label party can infer about one edge, at best",
        ["", "accuracy", "detection at 1 % false alarms"],
        [[name, f"{right:.1%}", f"{detected:.1%}"] for name, right, detected in rows],
    )
    print_paragraph(
        "At best: if it knows the whole graph except this edge, all features, every batch and the "
        "noise scale, and keeps everything it receives. One more release at this noise would raise "
        f"the graph to epsilon {more.epsilon:.4g}; a ledger with a budget of "
        f"{plan.certified.epsilon:.4g} refuses it before any noise is drawn."
    )


def _show_claimed(plan: Plan) -> None:
    claimed, whole = plan.claimed, plan.certified
    if claimed is None:
        hint = "; give --train-nodes" if plan.planned_traffic is None else ""
        print_paragraph(f"The paper's accountant is omitted: {plan.claimed_omitted}{hint}.")
        return
    here = claimed.epsilon_at_certified_noise
    print_table(
        "Certified and claimed, side by side",
        ["", "certified (this plan)", "claimed (the paper's plan)"],
        [
            ["epsilon stated", f"{whole.epsilon:.4g}", f"{claimed.epsilon:.4g}"],
            ["noise for it", f"{whole.noise_std:.4g}", f"{claimed.noise_std:.4g}"],
            [
                "epsilon that holds",
                f"{whole.epsilon:.4g}",
                f"at least {claimed.true_epsilon_lower_bound:.4g}",
            ],
            [
                f"stated at noise {whole.noise_std:.4g}",
                f"{whole.epsilon:.4g}",
                "-" if here is None else f"{here:.4g}",
            ],
            ["validation, inference", "covered", "not counted"],
            ["gradients", "involve no edge", "not covered"],
        ],
    )
    print_paragraph(
        "The claim requires batches that the label party does not know, but it does know them. "
        "'At least' counts the first layer's rows of both endpoints: everything for one layer, a "
        "part for more. Gradients that pass through raw edges come on top, without any bound."
    )


def _sizes(traffic: Traffic | None) -> list[str]:
    if traffic is None:
        return ["-", "-"]
    return [format_bytes(traffic.to_label_party), format_bytes(traffic.to_data_party)]


def format_bytes(count: float) -> str:
    """Format a number of bytes for people.

    >>> format_bytes(0), format_bytes(1000), format_bytes(3 * 2**20)
    ('-', '1000 B', '3 MiB')
    """
    if count == 0:
        return "-"
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} GiB"
