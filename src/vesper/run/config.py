"""From defaults, preset, file and command line to one checked `Config`; later ones win."""

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vesper.errors import InputError
from vesper.method.registry import find_method
from vesper.method.settings import Config, PrivacySettings, RunSettings, Settings
from vesper.run.preset import find_preset

Tables = dict[str, dict[str, Any]]


def load_config(
    path: Path | None, overrides: Mapping[str, Any], *, preset: str | None = None
) -> Config:
    """Defaults of the method, a preset, a TOML file, `table.key` or bare key overrides; checked.

    >>> load_config(None, {"epsilon": 1.0, "run.seed": 7}).run.seed
    7
    """
    given = _read(path)
    _put(given, overrides)
    name = given.get("run", {}).get("method", RunSettings().method)
    tables: Tables = {}
    _put(tables, find_method(str(name)).defaults)
    _put(tables, find_preset(preset) if preset else {})
    for table, values in given.items():
        tables.setdefault(table, {}).update(values)
    try:
        return Config.model_validate(tables)
    except ValidationError as error:
        raise InputError(_explain(path, error)) from None


def _read(path: Path | None) -> Tables:
    if path is None:
        return {}
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: not a readable TOML file ({error})") from None
    for table, values in tables.items():
        if not isinstance(values, dict):
            raise InputError(f"{path}: expected tables [privacy] and [run], got '{table}' outside")
        if table not in Config.model_fields:
            raise InputError(f"{path}: expected tables [privacy] and [run], got [{table}]")
    return tables


def _put(tables: Tables, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        table, _, name = _place(key).partition(".")
        tables.setdefault(table, {})[name] = value


def _keys() -> dict[str, str]:
    tables: dict[str, type[Settings]] = {"privacy": PrivacySettings, "run": RunSettings}
    return {name: f"{t}.{name}" for t, model in tables.items() for name in model.model_fields}


def _place(key: str) -> str:
    known = _keys()
    if key in known:
        return known[key]
    if key in known.values():
        return key
    raise InputError(f"unknown setting '{key}'{_nearest(key)}")


def _nearest(key: str) -> str:
    known = _keys()
    near = difflib.get_close_matches(key.rpartition(".")[2], known, n=1, cutoff=0.6)
    return f"; did you mean '{known[near[0]]}'?" if near else f"; known are {', '.join(known)}"


def _explain(path: Path | None, error: ValidationError) -> str:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    where = f"{path}: " if path else ""
    if first["type"] == "extra_forbidden":
        return f"{where}unknown setting '{key}'{_nearest(key)}"
    return f"{where}setting '{key}': {first['msg']}, got {first['input']!r}"
