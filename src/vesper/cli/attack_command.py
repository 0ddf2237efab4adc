"""`vesper attack`: what one party could find out from a run about what the other holds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vesper.cli.console import print_json, print_line, print_table, progress_display

if TYPE_CHECKING:
    from vesper.attack.attack_result import AttackResult

app = typer.Typer(
    help="Attack a run: who was in training, who knows whom, who has which label.",
    no_args_is_help=True,
)

Run = Annotated[Path, typer.Option(help="Run folder of 'vesper simulate'.")]
Data = Annotated[Path, typer.Option(help="Folder with data/ and label/ that it was trained on.")]
NumPairs = Annotated[int, typer.Option("--pairs", help="Pairs with an edge; as many without.")]
Seed = Annotated[int, typer.Option(help="Of the draw of nodes or pairs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@app.command("node-membership")
def node_membership(run: Run, data: Data, seed: Seed = 0, as_json: AsJson = False) -> None:
    """Tell training nodes from others by what the model says of them."""
    from vesper.attack.node_membership import attack_membership

    with progress_display() as progress:
        _print_result(attack_membership(run, data, seed=seed, progress=progress), as_json)


@app.command("edge-likelihood")
def edge_likelihood(
    run: Run, data: Data, pairs: NumPairs = 2000, seed: Seed = 0, as_json: AsJson = False
) -> None:
    """Tell edges by the likelihood ratio of everything that was shown."""
    _attack_edges("edge-likelihood", run, data, pairs, seed, as_json)


@app.command("edge-influence")
def edge_influence(
    run: Run, data: Data, pairs: NumPairs = 500, seed: Seed = 0, as_json: AsJson = False
) -> None:
    """Tell edges by changing one node's features and looking whose prediction moves."""
    _attack_edges("edge-influence", run, data, pairs, seed, as_json)


@app.command("edge-similarity")
def edge_similarity(
    run: Run, data: Data, pairs: NumPairs = 2000, seed: Seed = 0, as_json: AsJson = False
) -> None:
    """Tell edges by how alike the embeddings of two nodes are."""
    _attack_edges("edge-similarity", run, data, pairs, seed, as_json)


@app.command("label-inference")
def label_inference(run: Run, data: Data, seed: Seed = 0, as_json: AsJson = False) -> None:
    """The data party tells labels of training nodes by what comes back to it."""
    from vesper.attack.label_inference import attack_labels

    with progress_display() as progress:
        _print_result(attack_labels(run, data, seed=seed, progress=progress), as_json)


def _attack_edges(attack: str, run: Path, data: Path, pairs: int, seed: int, as_json: bool) -> None:
    from vesper.attack.edges import attack_edges

    with progress_display() as progress:
        found = attack_edges(attack, run, data, pairs=pairs, seed=seed, progress=progress)
    _print_result(found, as_json)


def _print_result(found: "AttackResult", as_json: bool) -> None:
    if as_json:
        print_json(found.as_json())
        return
    facts = found.as_json()
    rows = [["all", facts], *([_degree_range(each), each] for each in facts["by_degree"])]
    print_table(
        f"{found.attack} on {found.method}, epsilon {found.epsilon:g}",
        ["degree", "auc", "95 % interval", "tpr at 0.1 % fpr", "positives", "negatives"],
        [
            [
                name,
                f"{each['auc']:.3f}",
                f"{each['ci_low']:.3f} to {each['ci_high']:.3f}",
                f"{each['tpr_at_0.1pct_fpr']:.3f}",
                str(each["positives"]),
                str(each["negatives"]),
            ]
            for name, each in rows
        ],
    )
    print_line(f"the attacker has {found.knows}")


def _degree_range(group: dict[str, int | None]) -> str:
    low, high = group["degree_from"], group["degree_to"]
    return f"{low} and more" if high is None else f"{low} to {high}"
