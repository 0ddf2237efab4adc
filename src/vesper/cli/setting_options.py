"""Settings on the command line: options by name, `--set key=value`, and the engine.

The engine options choose where the data party's heavy work runs; they do not change any result.
"""

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from vesper.engine.choice import EngineName
from vesper.errors import InputError


def _complete_methods(incomplete: str) -> list[str]:
    from vesper.method.settings import METHOD_NAMES

    return [name for name in METHOD_NAMES if name.startswith(incomplete)]


def _complete_presets(incomplete: str) -> list[str]:
    from vesper.session.config import PRESETS

    return [name for name in PRESETS if name.startswith(incomplete)]


MethodOption = Annotated[
    str | None,
    typer.Option(
        help="Method, default: certified; an unknown name lists all.",
        autocompletion=_complete_methods,
    ),
]
PresetOption = Annotated[
    str | None,
    typer.Option(
        help="The paper's sizes: products, reddit or finance.", autocompletion=_complete_presets
    ),
]
EngineOption = Annotated[
    EngineName,
    typer.Option(help="Where releases are computed: this process, or workers of Ray."),
]
RayAddressOption = Annotated[
    str | None,
    typer.Option(help="With --engine ray: cluster, as host:port or auto; default: a local one."),
]
RayWorkersOption = Annotated[
    int | None, typer.Option(help="With --engine ray: number of workers; default: one per core.")
]


def settings_from_options(set_: Sequence[str] | None, **options: object) -> dict[str, Any]:
    """Combine options that were given with those of `--set`; refuse any given twice.

    >>> settings_from_options(["epochs=3", "encoder=gru"], epsilon=2.0, delta=None)
    {'epsilon': 2.0, 'epochs': 3, 'encoder': 'gru'}
    """
    given: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    places = {key: f"--{key} {value}" for key, value in given.items()}
    for text in set_ or []:
        key, value = _key_and_value(text)
        name = key.rpartition(".")[2]  # epsilon, from privacy.epsilon
        if name in places:
            raise InputError(
                f"{name}: expected it once, got it twice: {places[name]} and --set {text}; "
                f"remove one"
            )
        places[name] = f"--set {text}"
        given[key] = value
    return given


def _key_and_value(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--set: expected key=value, got '{text}'")
    try:
        return key, json.loads(value)
    except (ValueError, RecursionError):  # text; or thousands of digits or brackets
        return key, value
