"""`vesper demo`: two institutions on this machine; training with and without the graph."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vesper.cli.console import print_table, progress_display
from vesper.cli.side_by_side import show_side_by_side
from vesper.errors import InputError
from vesper.files import partial_folder

if TYPE_CHECKING:
    from vesper.deployment.local_pair import LocalPair

DEMO_MARKER = ".made-by-vesper-demo"
METHODS = {
    "mlp": "without the graph",
    "certified": "with the graph, certified: two processes",
    "paper-gin": "the paper's plan, claimed",
    "gin": "with the graph, no privacy",
}
STEPS = 1 + len(METHODS)
COLUMNS = ["method", "what", "epsilon", "spent", "noise", "ROC-AUC"]


def demo(
    nodes: Annotated[int, typer.Option(help="Number of users in the simulated graph.")] = 20_000,
    epsilon: Annotated[float, typer.Option(help="Privacy budget.")] = 4.0,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Keep data, runs and a report in this folder; an earlier demo is replaced. By "
            "default, everything is removed at the end."
        ),
    ] = None,
) -> None:
    """Compare four methods on simulated payments.

    A platform and a bank train with the certified method, as two processes on this machine.
    """
    with _demo_folder(out) as folder:
        rows = _run(nodes, epsilon, folder)
        if out is not None:
            _print_step("writing the report")
            page, all_methods = _page(out), _page_of_all_methods(out)
    print_table(f"Who is risky? Simulated payments, {nodes:,} users", COLUMNS, rows)
    typer.echo("epsilon: certified, unless marked as claimed by the paper; spent: charged to")
    if out is None:
        typer.echo(
            "the platform's ledger. Everything was removed; to keep data, runs, ledger and a"
        )
        typer.echo("report, name a folder with --out")
        return
    typer.echo(f"the platform's ledger, {out / 'two-parties' / 'platform' / 'ledger.sqlite'}")
    typer.echo(
        f"Compare the transcripts: vesper transcript compare {' '.join(_state_folders(out))}"
    )
    typer.echo(f"Report: {page}; all methods: {all_methods}")


@contextmanager
def _demo_folder(out: Path | None) -> Iterator[Path]:
    """Yield a folder to work in; it is kept only if it was chosen, and the demo succeeds."""
    if out is None:
        with partial_folder(Path(tempfile.gettempdir()), "vesper-demo-") as folder:
            yield folder
        return
    is_new = not out.exists()
    _replace_old_demo(out)
    try:
        yield out
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        if not is_new:
            out.mkdir(exist_ok=True)
        raise


def _run(nodes: int, epsilon: float, out: Path) -> list[list[str]]:
    """Simulate payments and train every method; return the rows of the table."""
    from vesper.datasets.finance import simulate_finance

    _print_step(f"1/{STEPS} simulating a payment platform with {nodes:,} users")
    with progress_display() as progress:
        simulate_finance(out / "finance", num_nodes=nodes, seed=0, progress=progress)
    return [
        _row(method, _train(step, method, epsilon, out))
        for step, method in enumerate(METHODS, start=2)
    ]


def _train(step: int, method: str, epsilon: float, out: Path) -> dict[str, Any]:
    """Train one method; return its result as JSON."""
    from vesper.session.config import load_config
    from vesper.simulation.simulate import simulate

    _print_step(f"{step}/{STEPS} training {METHODS[method]}")
    if method == "certified":
        return _train_two_parties(epsilon, out)
    config = load_config(None, {"method": method, "epsilon": epsilon})
    with progress_display() as progress:
        return simulate(out / "finance", config, out / f"run-{method}", progress=progress).as_json()


def _train_two_parties(epsilon: float, out: Path) -> dict[str, Any]:
    """Train with the certified plan, as two processes that authenticate by certificate."""
    import json

    from vesper.deployment.local_pair import DATA, LABEL, run_both_parties, set_up_local_pair

    pair = set_up_local_pair(
        out / "two-parties", out / "finance", {"privacy": {"epsilon": epsilon}}
    )
    with run_both_parties(pair) as lines:
        show_side_by_side([DATA, LABEL], lines)
    result: dict[str, Any] = json.loads((pair.state(LABEL) / "result/result.json").read_text())
    return result | {"spent": _spent_epsilon(pair)}


def _spent_epsilon(pair: "LocalPair") -> float:
    from contextlib import closing

    from vesper.privacy.ledger.account_reader import accounts
    from vesper.privacy.ledger.ledger_file import open_to_read

    with closing(open_to_read(pair.ledger)) as ledger:
        return max(balance.spent_epsilon() for balance in accounts(ledger))


def _row(method: str, result: dict[str, Any]) -> list[str]:
    privacy = result["privacy"]
    certified, claimed = privacy["certified_epsilon"], privacy["claimed_epsilon"]
    epsilon = "no edge is read" if privacy["plan"] == "edge-free" else "inf"
    if certified is not None and privacy["plan"] == "certified":
        epsilon = f"{certified:g}"
    elif claimed is not None:
        epsilon = f"{claimed:g}, claimed"
    return [
        method,
        METHODS[method],
        epsilon,
        f"{result['spent']:.2f}" if "spent" in result else "-",
        f"{privacy['noise_std']:.2f}" if privacy["noise_std"] else "-",
        f"{result['test']:.1f}",
    ]


def _page(out: Path) -> Path:
    from vesper.deployment.local_pair import LABEL, LocalPair
    from vesper.report.contents import contents_of_run
    from vesper.report.page import write_report

    pair = LocalPair(out / "two-parties")
    contents = contents_of_run(pair.state(LABEL), ledger=pair.ledger)
    return write_report(contents, out / "report.html")


def _page_of_all_methods(out: Path) -> Path:
    from vesper.deployment.local_pair import LABEL, LocalPair
    from vesper.report.comparison import compare_runs
    from vesper.report.comparison_page import render_comparison
    from vesper.report.page import write_page

    pair = LocalPair(out / "two-parties")
    certified = pair.state(LABEL)
    folders = [certified if name == "certified" else out / f"run-{name}" for name in METHODS]
    comparison = compare_runs(folders, ledgers={certified: pair.ledger})
    return write_page(render_comparison(comparison), out / "methods.html")


def _state_folders(out: Path) -> Iterator[str]:
    return (str(out / "two-parties" / name / "state") for name in ("platform", "bank"))


def _print_step(text: str) -> None:
    typer.echo(text, err=True)


def _replace_old_demo(out: Path) -> None:
    """Remove an earlier demo; refuse to touch anything else."""
    if out.exists() and any(out.iterdir()):
        if not (out / DEMO_MARKER).is_file():
            raise InputError(
                f"{out}: expected a new folder or an earlier demo; choose another with --out"
            )
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    (out / DEMO_MARKER).touch()
