"""From defaults, preset, file and command line to one checked `Config`; later ones win."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vesper.errors import InputError
from vesper.method.settings import Config, PrivacySettings, RunSettings
from vesper.run.preset import find_preset
from vesper.run.setup.settings_file import Tables, explain, keys_of, nearest, read_listed

KEYS = keys_of(privacy=PrivacySettings, run=RunSettings)


def load_config(
    path: Path | str | None, overrides: Mapping[str, Any], *, preset: str | None = None
) -> Config:
    """Defaults of the method, a preset, a TOML file, `table.key` or bare key overrides; checked.

    >>> load_config(None, {"epsilon": 1.0, "run.seed": 7}).run.seed
    7
    """
    file = None if path is None else Path(path)
    config, parties = config_and_parties(file, overrides, preset=preset)
    if parties:
        raise InputError(
            f"{path}: [[data_party]] is for `vesper simulate` and `vesper party label`; here there "
            f"is one data party"
        )
    return config


def config_and_parties(
    path: Path | None, overrides: Mapping[str, Any], *, preset: str | None = None
) -> tuple[Config, list[dict[str, Any]]]:
    """As `load_config`, with the `[[data_party]]` tables of the file as they stand there."""
    tables: Tables = {}
    parties: list[dict[str, Any]] = []
    if path is not None:
        tables, parties = read_listed(path, tuple(Config.model_fields), "data_party")
    _put(tables, overrides)
    return checked_config(tables, path=path, preset=preset), parties


def checked_config(given: Tables, *, path: Path | None, preset: str | None = None) -> Config:
    """Put what was given on top of the defaults of its method and of a preset, and check it."""
    from vesper.method.registry import (
        find_method,
    )  # loads torch, which `vesper init` can do without

    name = given.get("run", {}).get("method", RunSettings().method)
    tables: Tables = {}
    _put(tables, find_method(str(name)).defaults)
    _put(tables, find_preset(preset) if preset else {})
    for table, values in given.items():
        tables.setdefault(table, {}).update(values)
    try:
        return Config.model_validate(tables)
    except ValidationError as error:
        raise InputError(explain(path, error, KEYS)) from None


def _put(tables: Tables, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        table, _, name = _place(key).partition(".")
        tables.setdefault(table, {})[name] = value


def _place(key: str) -> str:
    short = {full.partition(".")[2]: full for full in KEYS}
    if key in short:
        return short[key]
    if key in KEYS:
        return key
    raise InputError(f"unknown setting '{key}'{nearest(key, KEYS)}")
