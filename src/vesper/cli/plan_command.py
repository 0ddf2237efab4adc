"""`vesper plan`: noise and guarantees, without any data."""

import math
from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer

from vesper.cli.console import print_json, print_table
from vesper.errors import InputError


def plan(
    epsilon: Annotated[float | None, typer.Option(help="Budget, to compute the noise.")] = None,
    noise_std: Annotated[
        float | None, typer.Option(help="Noise std, to compute the epsilon.")
    ] = None,
    delta: Annotated[float, typer.Option(help="A public constant.")] = 1e-6,
    hops: Annotated[int, typer.Option(min=1, help="Number of hops.")] = 2,
    refreshes: Annotated[int, typer.Option(min=1, help="How often each hop is released.")] = 1,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe/--no-probe",
            "--poll/--no-poll",
            help="Plan for the probe before the first hop; its size depends on --train-nodes.",
        ),
    ] = True,
    degrees_epsilon: Annotated[
        float, typer.Option(help="Cost of `vesper degrees`; 0 if not used.")
    ] = 0.0,
    nodes: Annotated[int, typer.Option(min=0, help="Number of nodes, for the traffic.")] = 0,
    train_nodes: Annotated[
        int,
        typer.Option(min=0, help="Training nodes, for probe, traffic and the paper's accountant."),
    ] = 0,
    val_nodes: Annotated[int, typer.Option(min=0, help="Validation nodes, for the traffic.")] = 0,
    classes: Annotated[int, typer.Option(min=2, help="Number of classes.")] = 2,
    batch_size: Annotated[int, typer.Option(min=1, help="Root nodes per batch.")] = 256,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training nodes.")] = 5,
    max_degree: Annotated[
        int, typer.Option(min=1, help="D of the paper's sampler; largest degree with --unit node.")
    ] = 20,
    unit: Annotated[
        str, typer.Option(help="What is protected: edge, or node (a node with all its edges).")
    ] = "edge",
    reproduce_paper: Annotated[
        bool, typer.Option(help="Compare the paper's claims with what its noise guarantees.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compute the noise for a budget, or the epsilon for a noise.

    Reads no data: everything follows from the options.
    """
    if reproduce_paper:
        _reproduce(as_json)
        return
    from vesper.cli.plan_page import show_plan
    from vesper.method.certified.method import members_for
    from vesper.method.certified.probe_size import probe_share
    from vesper.privacy.planning.plan import make_plan
    from vesper.privacy.planning.probe_share import no_probe
    from vesper.privacy.planning.traffic import TrafficSizes

    _refuse_options(epsilon, noise_std, delta, degrees_epsilon)
    if unit != "edge":
        _plan_for_nodes(unit, epsilon, delta, hops=hops, max_degree=max_degree, as_json=as_json)
        return
    if 0 < nodes < train_nodes + val_nodes:
        raise InputError(
            f"--nodes: expected at least the {train_nodes + val_nodes} nodes of --train-nodes and "
            f"--val-nodes, got {nodes}; give all nodes of the graph, or leave it out"
        )
    sizes = TrafficSizes(
        num_nodes=nodes,
        num_train_nodes=train_nodes,
        num_val_nodes=val_nodes,
        num_classes=classes,
        members=members_for(train_nodes),
        batch_size=batch_size,
        epochs=epochs,
        max_degree=max_degree,
    )
    made = make_plan(
        delta=delta,
        hops=hops,
        refreshes=refreshes,
        epsilon=epsilon,
        noise_std=noise_std,
        probe_share=partial(probe_share, num_train=train_nodes, num_classes=classes)
        if probe
        else no_probe,
        degrees_epsilon=degrees_epsilon,
        sizes=sizes,
    )
    if as_json:
        print_json(asdict(made))
    else:
        show_plan(made, hops=hops, refreshes=refreshes, noise_is_given=noise_std is not None)


def _refuse_options(
    epsilon: float | None, noise_std: float | None, delta: float, degrees_epsilon: float
) -> None:
    """Refuse options in terms of the command line, before the library refuses them in its own."""
    from vesper.privacy.events import LARGEST_NOISE, SMALLEST_NOISE

    if (epsilon is None) == (noise_std is None):
        raise InputError(
            "expected either --epsilon or --noise-std; try `vesper plan --epsilon 4`, or "
            "`vesper plan --noise-std 3` for the reverse"
        )
    if epsilon is not None and not 0 < epsilon < math.inf:
        raise InputError(
            f"--epsilon: expected a finite number above 0, got {epsilon:g}; try 1 or 4. Without "
            "privacy there is nothing to plan"
        )
    if noise_std is not None and not SMALLEST_NOISE <= noise_std <= LARGEST_NOISE:
        raise InputError(
            f"--noise-std: expected a number from {SMALLEST_NOISE:g} to {LARGEST_NOISE:g}, got "
            f"{noise_std:g}; less gives no privacy and more is not supported"
        )
    if not 0 < delta < 1:
        raise InputError(
            f"--delta: expected a number above 0 and below 1, got {delta:g}; try 1e-6, or less on "
            "a graph of more than 100,000 edges"
        )
    if not 0 <= degrees_epsilon <= 100:
        raise InputError(
            f"--degrees-epsilon: expected a number from 0 to 100, got {degrees_epsilon:g}; try 0.1"
        )


def _plan_for_nodes(
    unit: str, epsilon: float | None, delta: float, *, hops: int, max_degree: int, as_json: bool
) -> None:
    from vesper.cli.plan_page import show_node_plan
    from vesper.privacy.accounting.budget import Budget
    from vesper.privacy.planning.node_plan import plan_for_nodes

    if unit != "node":
        raise InputError(f"--unit: expected edge or node, got '{unit}'")
    if epsilon is None:
        raise InputError("--unit node: expected --epsilon, to compute the noise; add --epsilon 4")
    budget = Budget(epsilon=epsilon, delta=delta)
    made = plan_for_nodes(budget=budget, max_degree=max_degree, hops=hops)
    if as_json:
        print_json(asdict(made))
    else:
        show_node_plan(made, hops=hops)


def _reproduce(as_json: bool) -> None:
    from vesper.cli.plan_page import print_paragraph
    from vesper.privacy.planning.paper_plan import reproduce_paper

    rows = reproduce_paper()
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    columns = ["dataset", "layers", "claimed", "paper noise", "certified noise", "true, at least"]
    print_table(
        "What the paper's noise guarantees against a label party that knows the batches",
        columns,
        [
            [
                row.dataset,
                str(row.layers),
                f"{row.claimed_epsilon:g}",
                f"{row.paper_noise_std:.3g}",
                f"{row.certified_noise_std:.3g}",
                f"{row.true_epsilon_lower_bound:.3g}",
            ]
            for row in rows
        ],
    )
    print_paragraph(
        "claimed: the epsilon for which the paper's accountant gives 'paper noise'. true: the "
        "epsilon of the first layer's rows of both endpoints, exact for one layer; two layers "
        "release more than that, and gradients are not counted. certified noise: one release per "
        "hop, with the same epsilon, which does hold. Noise is std per unit-norm message, "
        "delta = 1 / |E|."
    )
