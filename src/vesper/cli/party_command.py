"""`vesper party data|label`: one side of a run over the network; `vesper receipts compare`."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from vesper.cli.console import print_json, print_table, say, shown_progress
from vesper.cli.interrupt import until_stopped

if TYPE_CHECKING:
    from vesper.deployment.config.multi_party_config import LabelTable
    from vesper.deployment.config.party_config import PartyConfig
    from vesper.session.result import DataResult, LabelResult

R = TypeVar("R", "DataResult", "LabelResult")

app = typer.Typer(
    help="Run one side of a contract with the other party, over the network.",
    no_args_is_help=True,
)
receipts_app = typer.Typer(
    help="What crossed between the parties, as each wrote it down.", no_args_is_help=True
)

ConfigOption = Annotated[Path, typer.Option("--config", help="This party's TOML file.")]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on with the run in its state.")]
OWN_ALONE = 0o077
"""The umask of a party: weights, labels and releases are this user's own."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@app.command("data")
def data(
    config: ConfigOption,
    resume: ResumeOption = False,
    answer: Annotated[
        bool, typer.Option("--answer", help="After training: answer the label party's questions.")
    ] = False,
    snapshot: Annotated[
        Path | None,
        typer.Option(help="With --answer: a folder with nodes and edges that came after training."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run the data party until the contract is fulfilled; with --answer, until it is stopped."""
    from vesper.deployment.data_process import run_data_party
    from vesper.errors import InputError

    settings = settings_of(config, "data")
    if answer:
        if resume or as_json:
            raise InputError("--answer: goes with neither --resume nor --json")
        _answer(settings, snapshot)
        return
    if snapshot is not None:
        raise InputError("--snapshot: is for --answer; a graph to train on is party.folder")
    if resume and _stayed(settings, [settings]):
        return
    result = _ran(run_data_party, settings, resume=resume, as_json=as_json)
    if result is None:
        return
    facts = result.privacy
    certified = "-" if facts.certified_epsilon is None else f"{facts.certified_epsilon:g}"
    print_table(
        f"{settings.party.state / 'result'}",
        ["method", "plan", "certified epsilon", "delta", "releases", "MB sent", "seconds"],
        [
            [
                result.method,
                facts.plan,
                certified,
                "-" if facts.delta is None else f"{facts.delta:g}",
                f"{facts.releases}",
                f"{result.bytes_sent / 1e6:.1f}",
                f"{result.seconds:.1f}",
            ]
        ],
    )
    say(f"noise: {facts.noise}")


@app.command("label")
def label(config: ConfigOption, resume: ResumeOption = False, as_json: JsonOption = False) -> None:
    """Run the label party until the contract is fulfilled."""
    from vesper.deployment.label_process import run_label_table, there_still
    from vesper.deployment.own_graph import finish_own
    from vesper.deployment.state_folder import is_finished

    table = table_of(config)
    if resume and is_finished(table.own):
        os.umask(OWN_ALONE)
        finish_own(table)
        _stayed(table.own, there_still(table))
        return
    result = _ran(run_label_table, table, resume=resume, as_json=as_json)
    if result is None:
        return
    print_table(
        f"{table.own.party.state / 'result'}",
        ["method", "plan", result.metric, "validation", "stage", "MB sent", "seconds"],
        [
            [
                result.method,
                result.privacy.plan,
                "-" if result.test is None else f"{result.test:.2f}",
                f"{result.validation:.2f}",
                f"{result.chosen_stage}",
                f"{result.bytes_sent / 1e6:.1f}",
                f"{result.seconds:.1f}",
            ]
        ],
    )


@receipts_app.command("compare")
def compare(
    mine: Annotated[Path, typer.Argument(help="A state folder, or its receipts.tsv.")],
    theirs: Annotated[Path, typer.Argument(help="The other party's.")],
    as_json: JsonOption = False,
) -> None:
    """Show the first frame that the two sides do not agree on; exit 1 if there is one."""
    from vesper.transport.transcript import first_difference, read_receipts

    paths = [path / "receipts.tsv" if path.is_dir() else path for path in (mine, theirs)]
    different = first_difference(*paths)
    count = sum(1 for _ in read_receipts(paths[0]))
    if as_json:
        ends = different or (None, None)
        named = [None if line is None else vars(line) for line in ends]
        print_json({"same": different is None, "frames": count, "difference": named})
    elif different is None:
        say(f"the same: {count} frames, in the same order, with the same content")
    else:
        for path, line in zip(paths, different, strict=True):
            shown = "ends before" if line is None else str(line).replace("\t", "  ")
            say(f"{path}: {shown}")
    if different is not None:
        raise typer.Exit(1)


def _ran(
    run: Callable[..., R], settings: "PartyConfig | LabelTable", *, resume: bool, as_json: bool
) -> R | None:
    """Run a side; give its result where it is still to be shown."""
    os.umask(OWN_ALONE)
    with shown_progress() as progress:
        result = run(settings, resume=resume, progress=progress, lost=_say_lost)
    if as_json:
        print_json(result.as_json())
        return None
    return result


def _answer(settings: "PartyConfig", snapshot: Path | None) -> None:
    from vesper.serving.embedding_server import answer_queries

    os.umask(OWN_ALONE)
    with until_stopped(), shown_progress() as progress:
        answer_queries(settings, snapshot=snapshot, progress=progress, said=say)
    say("stopped")


def settings_of(path: Path, role: str) -> "PartyConfig":
    """Read a party's file; refuse the other party's."""
    from vesper.deployment.config.party_config import load_party_config

    settings = load_party_config(path)
    _refuse_other_role(settings, role)
    return settings


def table_of(path: Path) -> "LabelTable":
    """Read the label party's file, with one data party or several."""
    from vesper.deployment.config.multi_party_config import load_table

    table = load_table(path)
    _refuse_other_role(table.own, "label")
    return table


def _refuse_other_role(settings: "PartyConfig", role: str) -> None:
    from vesper.errors import InputError

    if settings.party.role != role:
        raise InputError(
            f"{settings.path}: expected party.role '{role}', got '{settings.party.role}'; this "
            f"file is that of the {settings.party.role} party"
        )


def _stayed(settings: "PartyConfig", pairs: Sequence["PartyConfig"]) -> bool:
    """A run that is finished here may not be at the peers': stay until it is, or none has come."""
    from vesper.deployment.state_folder import is_finished, stay_for_peer

    if not is_finished(settings):
        return False
    say(f"this run is finished; its result is in {settings.party.state / 'result'}")
    for pair in pairs:
        with shown_progress() as progress:
            has_come = stay_for_peer(pair, progress=progress, lost=_say_lost)
        peer = "the peer" if len(pairs) == 1 else pair.party.peer
        say(
            f"{peer} has everything, too"
            if has_come
            else f"{peer} has not come: it may be finished"
        )
    return True


def _say_lost(why: str) -> None:
    typer.echo(f"vesper: {why}", err=True)
