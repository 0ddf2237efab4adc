"""`vesper attack`: what one party can infer from a run about the other party's data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vesper.cli.console import print_json, print_line, print_table, progress_display

if TYPE_CHECKING:
    from vesper.attack.attack_result import AttackResult

app = typer.Typer(
    help="Attack a run: infer training nodes, edges or labels.",
    no_args_is_help=True,
)

Run = Annotated[Path, typer.Option(help="Run folder of 'vesper simulate'.")]
Data = Annotated[Path, typer.Option(help="Folder with data/ and label/ that the run used.")]
NumPairs = Annotated[
    int, typer.Option("--pairs", help="Number of pairs with an edge, and of pairs without.")
]
Seed = Annotated[int, typer.Option(help="Seed of the draw of nodes or pairs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@app.command("node-membership")
def node_membership(run: Run, data: Data, seed: Seed = 0, as_json: AsJson = False) -> None:
    """Infer training nodes from the model's predictions."""
    from vesper.attack.node_membership import attack_membership

    with progress_display() as progress:
        _print_result(attack_membership(run, data, seed=seed, progress=progress), as_json)


@app.command("edge-likelihood")
def edge_likelihood(
    run: Run, data: Data, pairs: NumPairs = 2000, seed: Seed = 0, as_json: AsJson = False
) -> None:
    """Infer edges from the likelihood ratio of all releases."""
    _attack_edges("edge-likelihood", run, data, pairs, seed, as_json)


@app.command("edge-influence")
def edge_influence(
    run: Run, data: Data, pairs: NumPairs = 500, seed: Seed = 0, as_json: AsJson = False
) -> None:
    """Infer edges by changing the features of single nodes.

    An edge is likely to a node whose prediction moves.
    """
    _attack_edges("edge-influence", run, data, pairs, seed, as_json)


@app.command("edge-similarity")
def edge_similarity(
    run: Run, data: Data, pairs: NumPairs = 2000, seed: Seed = 0, as_json: AsJson = False
) -> None:
    """Infer edges from the similarity of two nodes' embeddings."""
    _attack_edges("edge-similarity", run, data, pairs, seed, as_json)


@app.command("label-inference")
def label_inference(run: Run, data: Data, seed: Seed = 0, as_json: AsJson = False) -> None:
    """Infer labels from what the data party receives."""
    from vesper.attack.label_inference import attack_labels

    with progress_display() as progress:
        _print_result(attack_labels(run, data, seed=seed, progress=progress), as_json)


def _attack_edges(attack: str, run: Path, data: Path, pairs: int, seed: int, as_json: bool) -> None:
    from vesper.attack.edges import attack_edges

    with progress_display() as progress:
        result = attack_edges(attack, run, data, pairs=pairs, seed=seed, progress=progress)
    _print_result(result, as_json)


def _print_result(result: "AttackResult", as_json: bool) -> None:
    if as_json:
        print_json(result.as_json())
        return
    facts = result.as_json()
    rows = [["all", facts], *([_degree_range(each), each] for each in facts["by_degree"])]
    print_table(
        f"{result.attack} on {result.method}, epsilon {result.epsilon:g}",
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
    print_line(f"the attacker has {result.knows}")


def _degree_range(group: dict[str, int | None]) -> str:
    low, high = group["degree_from"], group["degree_to"]
    return f"{low} and more" if high is None else f"{low} to {high}"
