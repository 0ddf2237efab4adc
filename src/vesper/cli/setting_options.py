"""Settings given on the command line: options by name, and `--set key=value`.

Options that say where the data party's heavy work runs; they change no number.
"""

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from vesper.engine.choice import EngineName
from vesper.errors import InputError

EngineOption = Annotated[
    EngineName,
    typer.Option(help="Where releases are computed: this process, or workers of Ray."),
]
RayAddressOption = Annotated[
    str | None,
    typer.Option(help="With --engine ray: a cluster, host:port or auto; default: one made here."),
]
RayWorkersOption = Annotated[
    int | None, typer.Option(help="With --engine ray: how many workers; default: one a core.")
]


def settings_from_options(set_: Sequence[str] | None, **options: object) -> dict[str, Any]:
    """Options that were given, and what `--set` says; nothing may be given twice.

    >>> settings_from_options(["epochs=3", "encoder=gru"], epsilon=2.0, delta=None)
    {'epsilon': 2.0, 'epochs': 3, 'encoder': 'gru'}
    """
    given: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    places = {key: f"--{key} {value}" for key, value in given.items()}
    for text in set_ or []:
        key, value = _key_and_value(text)
        name = key.rpartition(".")[2]  # of privacy.epsilon
        if name in places:
            raise InputError(
                f"{name}: expected it once, got it twice: {places[name]} and --set {text}; "
                f"take one away"
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
    except json.JSONDecodeError:
        return key, value
