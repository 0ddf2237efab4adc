"""Settings given on the command line: options by name, and `--set key=value`."""

import json
from collections.abc import Sequence
from typing import Any

from vesper.errors import InputError


def settings_given(set_: Sequence[str] | None, **options: object) -> dict[str, Any]:
    """Options that were given win over `--set`.

    >>> settings_given(["epochs=3", "encoder=gru"], epsilon=2.0, delta=None)
    {'epochs': 3, 'encoder': 'gru', 'epsilon': 2.0}
    """
    given: dict[str, Any] = dict(_pair(text) for text in set_ or [])
    return given | {key: value for key, value in options.items() if value is not None}


def _pair(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--set: expected key=value, got '{text}'")
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value
