"""`vesper party data|label`, one side of a run over the network; `vesper transcript compare`."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from vesper.cli.console import (
    keep_running_without_output,
    print_json,
    print_line,
    print_table,
    print_warning,
    progress_display,
)
from vesper.cli.interrupt import interruptible, until_interrupted
from vesper.session.observer import ProgressObserver

if TYPE_CHECKING:
    from vesper.deployment.config.multi_party_config import MultiPartyConfig
    from vesper.deployment.config.party_config import PartyConfig
    from vesper.session.result import DataResult, LabelResult

R = TypeVar("R", "DataResult", "LabelResult")

app = typer.Typer(
    help="Run one side of a contract over the network.",
    no_args_is_help=True,
)
transcript_app = typer.Typer(help="Compare the transcripts of both parties.", no_args_is_help=True)

ConfigOption = Annotated[Path, typer.Option("--config", help="This party's TOML file.")]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Resume the run in the state folder.")]
PRIVATE_UMASK = 0o077
"""Umask of a party: only this user may read its weights, labels and releases."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@app.command("data")
def data(
    config: ConfigOption,
    resume: ResumeOption = False,
    serve_embeddings: Annotated[
        bool, typer.Option("--answer", help="After training: answer the label party's queries.")
    ] = False,
    graph: Annotated[
        str | None,
        typer.Option(
            help="Name of the graph, to which its budget belongs; default: party.graph. With "
            "--snapshot: that of the snapshot's graph."
        ),
    ] = None,
    snapshot: Annotated[
        Path | None, typer.Option(help="With --answer: folder with a later graph; needs --graph.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run the data party until the contract is fulfilled.

    With --answer it serves a finished run until Ctrl-C.
    """
    from vesper.errors import InputError
    from vesper.privacy.ledger.graph_name import expect_graph_name

    settings = load_data_settings(config, "data")

    from vesper.deployment.data_process import run_data_party  # loads torch: settings are right
    from vesper.deployment.state_folder import return_reservation

    if serve_embeddings:
        if resume or as_json:
            raise InputError("--answer: expected without --resume and --json; remove them")
        _serve_embeddings(settings, snapshot, graph)
        return
    if snapshot is not None:
        raise InputError(
            "--snapshot: expected with --answer; the graph to train on is party.folder"
        )
    if resume and _wait_for_unfinished_peers(settings, [settings]):
        return_reservation(settings)
        return
    if graph is not None:
        party = settings.party.model_copy(update={"graph": expect_graph_name(graph)})
        settings = settings.model_copy(update={"party": party})
    result = _run_party(run_data_party, settings, own=settings, resume=resume, as_json=as_json)
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
                facts.plan_text,
                certified,
                "-" if facts.delta is None else f"{facts.delta:g}",
                f"{facts.releases}",
                f"{result.bytes_sent / 1e6:.1f}",
                f"{result.seconds:.1f}",
            ]
        ],
    )
    print_line(f"noise: {facts.noise}")


@app.command("label")
def label(config: ConfigOption, resume: ResumeOption = False, as_json: JsonOption = False) -> None:
    """Run the label party until the contract is fulfilled."""
    table = load_label_settings(config)

    from vesper.deployment.label_process import remaining_peers, run_label_party_with_peers
    from vesper.deployment.own_graph import finish_own_graph
    from vesper.deployment.state_folder import is_finished

    if resume and is_finished(table.own):
        os.umask(PRIVATE_UMASK)
        finish_own_graph(table)
        _wait_for_unfinished_peers(table.own, remaining_peers(table))
        return
    result = _run_party(
        run_label_party_with_peers, table, own=table.own, resume=resume, as_json=as_json
    )
    if result is None:
        return
    print_table(
        f"{table.own.party.state / 'result'}",
        ["method", "plan", result.metric, "validation", "stage", "MB sent", "seconds"],
        [
            [
                result.method,
                result.privacy.plan_text,
                "-" if result.test is None else f"{result.test:.2f}",
                f"{result.validation:.2f}",
                f"{result.chosen_stage}",
                f"{result.bytes_sent / 1e6:.1f}",
                f"{result.seconds:.1f}",
            ]
        ],
    )


@transcript_app.command("compare")
def compare(
    mine: Annotated[Path, typer.Argument(help="State folder, or its transcript.tsv.")],
    theirs: Annotated[Path, typer.Argument(help="The same of the other party.")],
    as_json: JsonOption = False,
) -> None:
    """Show the first frame that differs between the two transcripts.

    Exits with 1 if there is one.
    """
    from vesper.transport.transcript import first_difference, read_transcript

    paths = [path / "transcript.tsv" if path.is_dir() else path for path in (mine, theirs)]
    different = first_difference(*paths)
    count = sum(1 for _ in read_transcript(paths[0]))
    if as_json:
        ends = different or (None, None)
        named = [None if line is None else vars(line) for line in ends]
        print_json({"same": different is None, "frames": count, "difference": named})
    elif different is None:
        print_line(f"equal: {count} frames, in the same order, with the same content")
    else:
        for path, line in zip(paths, different, strict=True):
            description = "ends before" if line is None else str(line).replace("\t", "  ")
            print_line(f"{path}: {description}")
    if different is not None:
        raise typer.Exit(1)


def _run_party(
    run: Callable[..., R],
    settings: "PartyConfig | MultiPartyConfig",
    *,
    own: "PartyConfig",
    resume: bool,
    as_json: bool,
) -> R | None:
    """Run one side; return its result unless it was printed as JSON."""
    os.umask(PRIVATE_UMASK)
    with (
        interruptible(partial(_how_to_resume, own)),
        keep_running_without_output(),
        progress_display() as progress,
    ):
        result = run(settings, resume=resume, observer=TerminalObserver(progress))
    if as_json:
        print_json(result.as_json())
        return None
    return result


def _how_to_resume(settings: "PartyConfig") -> str:
    """Say what an interrupted run keeps, and how it goes on."""
    verb = f"vesper party {settings.party.role} --config {settings.path}"
    if not any(settings.party.state.rglob("session")):
        return f"the run had not started; start it with `{verb}`"
    return f"what was done is in {settings.party.state}; continue with `{verb} --resume`"


def _serve_embeddings(settings: "PartyConfig", snapshot: Path | None, graph: str | None) -> None:
    from vesper.serving.embedding_server import serve_embeddings

    os.umask(PRIVATE_UMASK)
    with until_interrupted(), keep_running_without_output(), progress_display() as progress:
        serve_embeddings(
            settings, snapshot=snapshot, graph=graph, progress=progress, log=print_line
        )
    print_line("stopped")


def load_data_settings(path: Path, role: str) -> "PartyConfig":
    """Read a party's file; refuse that of the other role."""
    from vesper.deployment.config.party_config import load_party_config

    settings = load_party_config(path)
    _refuse_other_role(settings, role)
    return settings


def load_label_settings(path: Path) -> "MultiPartyConfig":
    """Read the label party's file, with one data party or several."""
    from vesper.deployment.config.multi_party_config import load_multi_party_config

    table = load_multi_party_config(path)
    _refuse_other_role(table.own, "label")
    return table


def _refuse_other_role(settings: "PartyConfig", role: str) -> None:
    from vesper.errors import InputError

    if settings.party.role != role:
        raise InputError(
            f"{settings.path}: expected party.role '{role}', got '{settings.party.role}'; give the "
            f"file of the {role} party, or run vesper party {settings.party.role}"
        )


def _wait_for_unfinished_peers(settings: "PartyConfig", pairs: Sequence["PartyConfig"]) -> bool:
    """If the run is finished here, wait until the peers have finished or one has not connected."""
    from vesper.deployment.state_folder import is_finished, wait_for_peer_to_finish

    if not is_finished(settings):
        return False
    print_line(f"this run is finished; its result is in {settings.party.state / 'result'}")
    for pair in pairs:
        with progress_display() as progress:
            has_connected = wait_for_peer_to_finish(pair, observer=TerminalObserver(progress))
        peer = "the peer" if len(pairs) == 1 else pair.party.peer
        print_line(
            f"{peer} has received everything"
            if has_connected
            else f"{peer} has not connected; it may have finished"
        )
    return True


class TerminalObserver(ProgressObserver):
    """Observer that shows progress and prints warnings."""

    def warning(self, text: str) -> None:
        """Print the warning."""
        print_warning(text)
