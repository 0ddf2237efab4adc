"""The `vesper` command: verbs, exit codes and errors without tracebacks.

Verbs import what they need when they run, so that `vesper --help` stays fast.
"""

import errno
import io
import os
import signal
import sys
from typing import Annotated, NoReturn

import typer

from vesper.cli import (
    align_command,
    attack_command,
    audit_command,
    board_command,
    budget_command,
    cert_command,
    compare_command,
    contract_command,
    data_command,
    degrees_command,
    demo_command,
    init_command,
    learn_command,
    party_command,
    plan_command,
    predict_command,
    preflight_command,
    prepare_command,
    release_command,
    report_command,
    runs_command,
    serve_command,
    simulate_command,
    study_command,
)
from vesper.cli.interrupt import Interrupted, interruptible
from vesper.cli.verbs import AllVerbs, Verbs
from vesper.errors import VesperError
from vesper.version import VERSION

EXIT_CODES = (
    "Exit codes: 0 success, 1 the run failed, 2 invalid input, 3 refused by the\n"
    "privacy budget, 4 the peer failed, 130 stopped by Ctrl-C."
)

OUT_OF_MEMORY_MESSAGE = (
    "expected enough memory for these settings, ran out of it; lower width, message_width or "
    "batch_size, or use fewer nodes"
)

# Waiting torch threads must not spin, since both parties of a simulation share the cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # this program reports errors itself, in one line

app = typer.Typer(
    name="vesper",
    cls=AllVerbs,
    help="Train a graph neural network across two parties with certified edge privacy.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data_command.app, name="data", cls=Verbs)
app.command("prepare")(prepare_command.prepare)
app.command("degrees")(degrees_command.degrees)
app.command("plan")(plan_command.plan)
app.add_typer(budget_command.app, name="budget", cls=Verbs)
app.command("simulate")(simulate_command.simulate)
app.command("release")(release_command.release)
app.command("verify")(release_command.verify)
app.command("learn")(learn_command.learn)
app.command("report")(report_command.report)
app.command("runs")(runs_command.runs)
app.command("compare")(compare_command.compare)
app.command("board")(board_command.board)
app.command("audit")(audit_command.audit)
app.add_typer(attack_command.app, name="attack", cls=Verbs)
app.add_typer(study_command.app, name="study", cls=Verbs)
app.command("demo")(demo_command.demo)
app.command("init")(init_command.init)
app.add_typer(cert_command.app, name="cert", cls=Verbs)
app.command("contract")(contract_command.contract)
app.command("preflight")(preflight_command.preflight)
app.command("align")(align_command.align)
app.add_typer(party_command.app, name="party", cls=Verbs)
app.add_typer(party_command.transcript_app, name="transcript", cls=Verbs)
app.add_typer(party_command.transcript_app, name="receipts", cls=Verbs, hidden=True)  # former name
app.command("predict")(predict_command.predict)
app.command("serve")(serve_command.serve)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vesper {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Train a graph neural network across two parties with certified edge privacy."""


DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def full_disk_message(error: OSError) -> str:
    """Describe an error of writing to a disk that is full, or a file that may not grow."""
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}cannot be written ({error.strerror or error}); free some space and try again"


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error means that memory ran out; torch raises a RuntimeError for it."""
    return isinstance(error, MemoryError) or "allocate memory" in str(error)


def main() -> None:
    """Run the command line; expected errors end with one message and their exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names of people need not fit a terminal
            stream.reconfigure(errors="backslashreplace")
    try:
        with interruptible():
            app()
    except VesperError as error:
        _fail(str(error), error.exit_code)
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        _fail(full_disk_message(error), 1)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        _fail(OUT_OF_MEMORY_MESSAGE, 1)
    except Interrupted as interrupted:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # ignore further Ctrl-C
        _fail(f"interrupted; {interrupted}", 130)


def _fail(message: str, exit_code: int) -> NoReturn:
    typer.echo(f"vesper: {message}", err=True)
    sys.exit(exit_code)
