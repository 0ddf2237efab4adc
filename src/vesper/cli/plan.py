"""`vesper plan`: noise and guarantees before there is data."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from vesper.cli.show import print_json, print_table
from vesper.errors import InputError

if TYPE_CHECKING:
    from vesper.privacy.plan import Plan


def plan(
    epsilon: Annotated[float | None, typer.Option(help="Budget: gives the noise.")] = None,
    noise_std: Annotated[float | None, typer.Option(help="Noise: gives the epsilon.")] = None,
    delta: Annotated[float, typer.Option(help="A public constant.")] = 1e-6,
    hops: Annotated[int, typer.Option(min=1, help="Hops of message passing.")] = 2,
    refreshes: Annotated[int, typer.Option(min=1, help="Times each hop is released.")] = 1,
    nodes: Annotated[int, typer.Option(min=0, help="Nodes, for bytes on the wire.")] = 0,
    train_nodes: Annotated[
        int, typer.Option(min=0, help="Training nodes, for the wire and the paper's accountant.")
    ] = 0,
    classes: Annotated[int, typer.Option(min=2, help="Classes.")] = 2,
    batch_size: Annotated[int, typer.Option(min=1)] = 256,
    epochs: Annotated[int, typer.Option(min=1)] = 5,
    max_degree: Annotated[int, typer.Option(min=2, help="D of the paper's sampler.")] = 20,
    reproduce_paper: Annotated[
        bool, typer.Option(help="The paper's datasets and epsilons, and what is true.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a training would cost, or what a noise is worth. Reads no data."""
    if reproduce_paper:
        _reproduce(as_json)
        return
    from vesper.privacy.plan import Sizes, make_plan

    if (epsilon is None) == (noise_std is None):
        raise InputError("expected either --epsilon or --noise-std")
    sizes = Sizes(
        num_nodes=nodes,
        num_train_nodes=train_nodes,
        num_classes=classes,
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
        sizes=sizes,
    )
    if as_json:
        print_json(asdict(made))
    else:
        _show(made, delta)


def _show(made: "Plan", delta: float) -> None:
    rows = [
        (f"after release {phase.releases}", phase)
        for phase in made.phases
        if phase.releases in (1, made.certified.releases) or len(made.phases) <= 6
    ]
    rows.append(("with one more", made.one_more_release))
    print_table(
        f"certified, delta {delta:g}, noise_std {made.certified.noise_std:.4g} a unit message",
        ["", "mu", "epsilon", "best guess of one edge"],
        [[n, f"{p.mu:.4f}", f"{p.epsilon:.4g}", f"{p.attack_accuracy:.1%}"] for n, p in rows],
    )
    if made.claimed:
        typer.echo(
            f"The paper's plan would claim epsilon {made.claimed.epsilon:.4g} with noise "
            f"{made.claimed.noise_std:.4g} ({made.claimed.noise_ratio:.1f} times as much); against "
            f"a label party who knows the batches that noise is worth at least epsilon "
            f"{made.claimed.true_epsilon_lower_bound:.4g}."
        )
    if made.wire:
        typer.echo(
            f"On the wire: {_size(made.wire.per_batch_each_way)} a batch each way, "
            f"{_size(made.wire.training_each_way)} for training each way, "
            f"{_size(made.wire.evaluation)} to evaluate all other nodes."
        )


def _reproduce(as_json: bool) -> None:
    from vesper.privacy.comparison import reproduce_paper

    rows = reproduce_paper()
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    columns = ["dataset", "layers", "claimed", "paper noise", "certified noise", "true, at least"]
    print_table(
        "What the paper's noise guarantees against a label party who knows the batches",
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


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} GiB"
