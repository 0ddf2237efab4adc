"""Verbs as a command group: help in one screen, examples with each verb, options given only once.

vesper --help            all verbs by what they are for: 80 columns, 24 lines with the prompt
vesper VERB --help       its options, and examples (`examples`)
vesper VERB --a 1 --a 2  refused: of two values for one option, one would be ignored silently
"""

from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup, TyperOption

from vesper.cli.examples import EXAMPLES
from vesper.errors import InputError

VERBS_BY_PURPOSE = {
    "Data": {
        "data": "make, convert, check",
        "prepare": "transfers to tables",
        "degrees": "private histogram",
        "align": "compare both sides' ids",
    },
    "Train": {
        "plan": "noise for an epsilon",
        "simulate": "both parties at once",
        "demo": "four methods compared",
        "study": "grids, paper's tables",
        "learn": "on an exported file",
    },
    "Verify": {
        "budget": "what was spent, is left",
        "audit": "lower bound on leakage",
        "attack": "infer edges, labels",
        "verify": "check an exported file",
        "transcript": "compare what crossed",
        "compare": "runs side by side",
    },
    "Deploy": {
        "init": "template of settings",
        "cert": "keys and certificates",
        "contract": "show it, approve it",
        "preflight": "can a run start?",
        "party": "run one side",
    },
    "After": {
        "report": "page about a run",
        "board": "the same page, live",
        "predict": "with the trained model",
        "serve": "predictions over HTTP",
        "release": "features for any learner",
        "runs": "all runs below a folder",
    },
}
"""Purposes, and verbs in the order in which they are needed, each in a few words."""

PURPOSE_WIDTH, NAME_WIDTH, CELL_WIDTH = 8, 11, 36


class Verbs(TyperGroup):
    """A group of verbs: examples in their help, and no option twice."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Find a verb, and add its examples."""
        command = super().get_command(ctx, cmd_name)
        path = cmd_name if ctx.parent is None else f"{ctx.info_name} {cmd_name}"
        if command is not None and not command.epilog and path in EXAMPLES:
            lines = "\n".join(f"  {line}" for line in EXAMPLES[path])
            command.epilog = f"\b\n{heading('Examples:')}\n{lines}"  # \b: lines stay as they are
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the verb that the arguments name, and refuse options that are given twice."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not isinstance(command, TyperGroup):
            refuse_repeated_options(command.params, rest)
        return name, command, rest


class AllVerbs(Verbs):
    """The group of all verbs, whose help fits on one screen."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help by purpose."""
        formatter.write(f"{heading('Usage:')} {ctx.command_path} VERB [OPTIONS] [ARGS]...\n\n")
        formatter.write(f"  {self.help}\n\n")
        for purpose, verbs in VERBS_BY_PURPOSE.items():
            formatter.write(_purpose_lines(purpose, verbs))
        formatter.write(
            f"\n{heading('Options:')} --version, -h or --help (also after a verb),\n"
            f"         --install-completion, --show-completion\n{self.epilog}\n"
        )


def heading(text: str) -> str:
    """Colour a heading; the colour is left out where the output is not a terminal."""
    return typer.style(text, fg=typer.colors.CYAN, bold=True)


def _purpose_lines(purpose: str, verbs: dict[str, str]) -> str:
    cells = [
        f"{typer.style(name, bold=True)}{' ' * (NAME_WIDTH - len(name))}{words}".ljust(
            CELL_WIDTH + len(typer.style(name, bold=True)) - len(name)
        )
        for name, words in verbs.items()
    ]
    rows = ["".join(cells[k : k + 2]).rstrip() for k in range(0, len(cells), 2)]
    starts = [heading(purpose) + " " * (PURPOSE_WIDTH - len(purpose)), *[" " * PURPOSE_WIDTH] * 9]
    return "".join(f"{start}{row}\n" for start, row in zip(starts, rows, strict=False))


def refuse_repeated_options(params: Sequence[Any], args: Sequence[str]) -> None:
    """Refuse an option that is given twice, unless it is repeatable.

    Raises:
        InputError: one is; the message says how often.
    """
    before_arguments = args[: args.index("--")] if "--" in args else args
    words = [word.partition("=")[0] for word in before_arguments if word.startswith("-")]
    for option in params:
        if not isinstance(option, TyperOption) or option.multiple or option.count:
            continue
        names = [*option.opts, *option.secondary_opts]
        given = [word for word in words if word in names]
        if len(given) > 1:
            raise InputError(
                f"{names[0]}: expected it once, got it {len(given)} times "
                f"({', '.join(given)}); remove all but one"
            )
