"""One checked `Config` from defaults, preset, TOML file and command line; later ones win.

An unknown key is refused and the nearest known one suggested, so that a typo never leaves a setting
at its default. The presets are the paper's training configurations, one per dataset:

| preset | hidden units | epochs | learning rate | D | D_min | delta |
| --- | --- | --- | --- | --- | --- | --- |
| products | 128 | 5 | 0.001 | 20 | 10 | 1 / 123,718,280 |
| reddit | 512 | 5 | 0.001 | 20 | 10 | 1 / 114,615,892 |
| finance | 256 | 2 | 0.001 | 10 | 3 | 1 / 2,447,370 |

Where the paper tunes D and D_min over a range, a preset has the first value of the range. Delta is
one over the number of edges that the paper prints, batches are of 32
(`privacy.planning.paper_plan`), and GAP's messages are as wide as its hidden layers: the paper uses
one width "across all models".
"""

import difflib
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from vesper.errors import InputError
from vesper.method.settings import Config, PrivacySettings, RunSettings, expect_method_name
from vesper.privacy.planning.paper_plan import PAPER_BATCH_SIZE, PAPER_DATASETS

PAPER: Mapping[str, Any] = {
    "learning_rate": 0.001,
    "batch_size": PAPER_BATCH_SIZE,
    "patience": 5,
    "weight_decay": 0.0,
    "dropout": 0.0,
}
_TUNED: Mapping[str, Mapping[str, Any]] = {
    "products": {"width": 128, "message_width": 128, "min_degree": 10},
    "reddit": {"width": 512, "message_width": 512, "min_degree": 10},
    "finance": {"width": 256, "message_width": 256, "min_degree": 3},
}
PRESETS: Mapping[str, Mapping[str, Any]] = {
    dataset.name: {
        **PAPER,
        **_TUNED[dataset.name],
        "epochs": dataset.num_epochs,
        "max_degree": dataset.max_degree,
        "delta": dataset.delta,
    }
    for dataset in PAPER_DATASETS
}


def find_preset(name: str) -> Mapping[str, Any]:
    """Return the settings of a preset."""
    if name not in PRESETS:
        raise InputError(f"--preset: expected one of {', '.join(PRESETS)}, got '{name}'")
    return PRESETS[name]


Tables = dict[str, dict[str, Any]]

MAX_TOML_BYTES = 1 << 20
"""Most bytes of a settings file."""


def read_tables(path: Path, known: Sequence[str]) -> Tables:
    """Read a TOML file that has only known tables.

    Raises:
        InputError: it cannot be read, is not TOML, or contains something else.
    """
    tables, _ = read_tables_with_list(path, known, None)
    return tables


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file without checking its contents.

    Raises:
        InputError: it cannot be read, or is not TOML.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_TOML_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"{path}: expected a TOML file, got '{error.strerror}'; check the path"
        ) from None
    if len(content) > MAX_TOML_BYTES:
        raise InputError(
            f"{path}: expected a TOML file of at most {MAX_TOML_BYTES >> 20} MiB, found a larger "
            f"one; check the path"
        )
    try:
        tables = tomllib.loads(content.decode("utf-8"))
    except RecursionError:
        raise InputError(f"{path}: not a readable TOML file (too many brackets)") from None
    except ValueError as error:  # not UTF-8, not TOML, or a number of thousands of digits
        reason = str(error).partition("; use sys.")[0]
        raise InputError(f"{path}: not a readable TOML file ({reason})") from None
    _refuse_large_numbers(path, tables)
    return tables


def _refuse_large_numbers(path: Path, tables: dict[str, Any]) -> None:
    """Refuse whole numbers of more than 64 bits; TOML has none, and messages cannot show them."""
    pending: list[tuple[str, Any]] = [("", tables)]
    while pending:
        key, value = pending.pop()
        if isinstance(value, dict):
            pending.extend(value.items())
        elif isinstance(value, list):
            pending.extend((key, each) for each in value)
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise InputError(
                f"{path}: '{key}': expected whole numbers of at most 64 bits, found one of "
                f"{value.bit_length()} bits"
            )


def read_tables_with_list(
    path: Path, known: Sequence[str], listed: str | None
) -> tuple[Tables, list[dict[str, Any]]]:
    """Read a TOML file in which one kind of table may occur several times, as `[[listed]]`.

    Raises:
        InputError: as `read_tables` does.
    """
    tables = read_toml(path)
    named = [f"[{name}]" for name in known] + ([f"[[{listed}]]"] if listed else [])
    expected = f"{path}: expected tables {', '.join(named[:-1])} and {named[-1]}"
    rows = tables.pop(listed, []) if listed else []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{expected}; write one [[{listed}]] for each of them")
    for table, values in tables.items():
        if not isinstance(values, dict):
            raise InputError(f"{expected}, got '{table}' outside of any table")
        if table not in known:
            raise InputError(f"{expected}, got [{table}]")
    return tables, rows


def keys_of(**tables: type[BaseModel]) -> list[str]:
    """List all settings as `table.key`."""
    return [f"{table}.{name}" for table, model in tables.items() for name in model.model_fields]


def suggest_key(key: str, known: Collection[str]) -> str:
    """Suggest which known key was meant, as the end of an error message.

    >>> suggest_key("party.patince", ["run.patience", "party.patience", "party.peer"])
    "; did you mean 'party.patience'?"
    >>> suggest_key("party.wdith", ["run.width", "party.peer"])
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


def explain_first_error(path: Path | None, error: ValidationError, known: Collection[str]) -> str:
    """Describe the first validation error: file, setting, expected, found."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    where = f"{path}: " if path else ""
    if first["type"] == "extra_forbidden":
        return f"{where}unknown setting '{key}'{suggest_key(key, known)}"
    if first["type"] == "missing":
        return f"{where}setting '{key}' is missing"
    message = f"{where}setting '{key}': {first['msg'].removeprefix('Value error, ')}"
    return message if isinstance(first["input"], dict) else f"{message}, got {first['input']!r}"


KEYS = keys_of(privacy=PrivacySettings, run=RunSettings)


def load_config(
    path: Path | str | None, overrides: Mapping[str, Any], *, preset: str | None = None
) -> Config:
    """Load and check settings: defaults of the method, preset, TOML file, overrides.

    Overrides are named by `table.key` or by the bare key.

    >>> load_config(None, {"epsilon": 1.0, "run.seed": 7}).run.seed
    7
    """
    file = None if path is None else Path(path)
    config, parties = load_config_and_parties(file, overrides, preset=preset)
    if parties:
        raise InputError(
            f"{path}: [[data_party]] is for `vesper simulate` and `vesper party label`; expected a "
            f"single data party here"
        )
    return config


def load_config_and_parties(
    path: Path | None, overrides: Mapping[str, Any], *, preset: str | None = None
) -> tuple[Config, list[dict[str, Any]]]:
    """Load settings as `load_config` does, and the file's unchecked `[[data_party]]` tables."""
    tables: Tables = {}
    parties: list[dict[str, Any]] = []
    if path is not None:
        tables, parties = read_tables_with_list(path, tuple(Config.model_fields), "data_party")
    _set_values(tables, overrides)
    return checked_config(tables, path=path, preset=preset), parties


def checked_config(given: Tables, *, path: Path | None, preset: str | None = None) -> Config:
    """Apply the given settings over the defaults of their method and a preset, and check them."""
    name = expect_method_name(str(given.get("run", {}).get("method", RunSettings().method)))
    chosen = find_preset(preset) if preset else {}
    _refuse_wrong_values(given, path)

    from vesper.method.registry import find_method  # loads torch, which takes seconds

    tables: Tables = {}
    _set_values(tables, find_method(name).defaults)
    _set_values(tables, chosen)
    for table, values in given.items():
        tables.setdefault(table, {}).update(values)
    return _refuse_invalid(tables, path=path)


def _refuse_invalid(tables: Tables, *, path: Path | None) -> Config:
    try:
        config = Config.model_validate(tables)
    except ValidationError as error:
        raise InputError(explain_first_error(path, error, KEYS)) from None
    expect_method_name(config.run.method)
    return config


def _refuse_wrong_values(given: Tables, path: Path | None) -> None:
    """Refuse a value that is wrong whatever the method's defaults are."""
    try:
        Config.model_validate(given)
    except ValidationError as error:
        if len(error.errors()[0]["loc"]) > 1:  # otherwise it is about several values together
            raise InputError(explain_first_error(path, error, KEYS)) from None


def _set_values(tables: Tables, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        table, _, name = _full_key(key).partition(".")
        tables.setdefault(table, {})[name] = value


def _full_key(key: str) -> str:
    short = {full.partition(".")[2]: full for full in KEYS}
    if key in short:
        return short[key]
    if key in KEYS:
        return key
    raise InputError(f"unknown setting '{key}'{suggest_key(key, KEYS)}")
