"""Help in one screen, examples that can be typed, and options given once."""

import re
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
import typer
import typer.main

from vesper.cli.app import app
from vesper.cli.examples import EXAMPLES
from vesper.cli.verbs import VERBS_BY_PURPOSE, Verbs
from vesper.method.registry import METHODS
from vesper.method.settings import METHOD_NAMES
from vesper.session.config import PRESETS

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal


def all_verbs(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each visible verb without verbs below it, by its path."""
    for name, inner in command.commands.items():
        if isinstance(inner, Verbs):
            yield from all_verbs(inner, f"{path}{name} ") if not inner.hidden else ()
        else:
            yield f"{path}{name}", inner


ALL = dict(all_verbs(typer.main.get_command(app)))


def test_help_is_one_screen_and_has_every_verb_once(terminal: "Terminal") -> None:
    assert terminal.run("--help") == 0
    lines = terminal.out.splitlines()
    assert len(lines) <= 23  # with the prompt, 24
    assert max(map(len, lines)) <= 80
    named = [verb for verbs in VERBS_BY_PURPOSE.values() for verb in verbs]
    group: Any = typer.main.get_command(app)
    shown = {name for name, command in group.commands.items() if not command.hidden}
    assert sorted(named) == sorted(shown)
    words = terminal.out.split()
    assert all(verb in words for verb in named)


def test_help_has_colour_only_on_a_terminal(
    terminal: "Terminal", monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments in (("--help",), ("plan", "--help")):
        assert terminal.run(*arguments) == 0
        plain = terminal.out
        assert "\x1b" not in plain
        with monkeypatch.context() as patch:
            patch.setenv("FORCE_COLOR", "1")
            patch.setattr("sys.stdout.isatty", lambda: True)
            assert terminal.run(*arguments) == 0
        assert "\x1b[" in terminal.out
        assert re.sub(r"\x1b\[[0-9;]*m", "", terminal.out) == plain


@pytest.mark.parametrize("path", sorted(ALL))
def test_every_verb_has_examples_that_can_be_typed(terminal: "Terminal", path: str) -> None:
    assert terminal.run(*path.split(), "--help") == 0
    for line in EXAMPLES[path]:
        assert len(line) <= 77
        assert f"  {line}\n" in terminal.out
    options = {name for p in ALL[path].params for name in (*p.opts, *p.secondary_opts)}
    required = {p.opts[0] for p in ALL[path].params if p.required and p.opts[0].startswith("-")}
    for example in "\n".join(EXAMPLES[path]).replace("\\\n", " ").splitlines():
        words = shlex.split(example)
        assert " ".join(words).startswith(f"vesper {path}")
        given = {word for word in words if word.startswith("--")}
        assert given <= options
        assert required <= given


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "--epsilon", "4", "--epsilon", "1"), "--epsilon: expected it once, got it 2"),
        (("plan", "--epsilon=4", "--epsilon", "1"), "--epsilon: expected it once"),
        (("plan", "--probe", "--no-probe"), "--probe: expected it once, got it 2 times (--probe"),
        (("party", "data", "--config", "a", "--config", "b"), "--config: expected it once"),
    ],
)
def test_an_option_given_twice_is_refused(
    terminal: "Terminal", arguments: tuple[str, ...], message: str
) -> None:
    assert terminal.run(*arguments) == 2
    assert message in terminal.err


def test_repeatable_options_may_be_repeated(terminal: "Terminal") -> None:
    arguments = ("simulate", "--data", "none", "--out", "none", "--set", "a=1", "--set", "b=2")
    assert terminal.run(*arguments) == 2
    assert "unknown setting 'a'" in terminal.err


def test_values_complete() -> None:
    assert list(METHODS) == list(METHOD_NAMES)
    for path in ("simulate", "audit"):
        method = next(p for p in ALL[path].params if p.name == "method")
        assert completed(method, "gi") == ["gin"]
        assert completed(method, "") == sorted(METHOD_NAMES)
    preset = next(p for p in ALL["simulate"].params if p.name == "preset")
    assert completed(preset, "") == sorted(PRESETS)


def completed(option: Any, incomplete: str) -> list[str]:
    context = typer.main.get_command(app).make_context("vesper", ["plan"])
    return sorted(item.value for item in option.shell_complete(context, incomplete))
