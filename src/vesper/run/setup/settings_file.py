"""TOML files of settings: read, and every mistake in them said in one line.

An unknown key is refused with the nearest known one, so that a slip of the pen never leaves a
setting at its default.
"""

import difflib
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from vesper.errors import InputError

Tables = dict[str, dict[str, Any]]


def read_tables(path: Path, known: Sequence[str]) -> Tables:
    """Read a TOML file that has no tables but the known ones.

    Raises:
        InputError: it cannot be read, is no TOML, or has something else in it.
    """
    tables, _ = read_listed(path, known, None)
    return tables


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file as it stands.

    Raises:
        InputError: there is none, or it is something else.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"{path}: expected a TOML file, got '{error.strerror}'; see whether the path is right"
        ) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: not a readable TOML file ({error})") from None


def read_listed(
    path: Path, known: Sequence[str], listed: str | None
) -> tuple[Tables, list[dict[str, Any]]]:
    """Read a TOML file that may have one kind of table several times, as `[[listed]]`.

    Raises:
        InputError: as `read_tables`.
    """
    tables = read_toml(path)
    named = [f"[{name}]" for name in known] + ([f"[[{listed}]]"] if listed else [])
    expected = f"{path}: expected tables {', '.join(named[:-1])} and {named[-1]}"
    rows = tables.pop(listed, []) if listed else []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{expected}; write [[{listed}]], once for each of them")
    for table, values in tables.items():
        if not isinstance(values, dict):
            raise InputError(f"{expected}, got '{table}' outside")
        if table not in known:
            raise InputError(f"{expected}, got [{table}]")
    return tables, rows


def keys_of(**tables: type[BaseModel]) -> list[str]:
    """List all settings as `table.key`."""
    return [f"{table}.{name}" for table, model in tables.items() for name in model.model_fields]


def nearest(key: str, known: Collection[str]) -> str:
    """End a message about an unknown key: which one may have been meant.

    >>> nearest("party.patince", ["run.patience", "party.patience", "party.peer"])
    "; did you mean 'party.patience'?"
    >>> nearest("party.wdith", ["run.width", "party.peer"])
    "; did you mean 'run.width'?"
    """
    table, _, name = key.rpartition(".")
    inside = [full for full in known if full.startswith(f"{table}.")]
    for candidates in (inside, known):
        short = {full.rpartition(".")[2]: full for full in candidates}
        near = difflib.get_close_matches(name, short, n=1, cutoff=0.6)
        if near:
            return f"; did you mean '{short[near[0]]}'?"
    return f"; known are {', '.join(full.rpartition('.')[2] for full in inside or known)}"


def explain(path: Path | None, error: ValidationError, known: Collection[str]) -> str:
    """Say the first thing that is wrong: file, setting, expected, found."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    where = f"{path}: " if path else ""
    if first["type"] == "extra_forbidden":
        return f"{where}unknown setting '{key}'{nearest(key, known)}"
    if first["type"] == "missing":
        return f"{where}setting '{key}' is missing"
    said = f"{where}setting '{key}': {first['msg'].removeprefix('Value error, ')}"
    return said if isinstance(first["input"], dict) else f"{said}, got {first['input']!r}"
