"""Settings, in two tables: what changes epsilon, and what cannot.

Anything in here may be shown to the label party: a value computed from edges is never a setting.
"""

import difflib
import hashlib
import math
import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vesper.errors import InputError


class Settings(BaseModel):
    """Frozen, and strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PrivacySettings(Settings):
    """What changes epsilon."""

    epsilon: float = Field(default=4.0, gt=0)
    delta: float | None = Field(default=None, gt=0, lt=1)
    hops: int = Field(default=2, ge=1, le=3)


class RunSettings(Settings):
    """What cannot change epsilon."""

    method: str = "vesper"
    seed: int = Field(default=0, ge=0)
    width: int = Field(default=64, ge=1)
    epochs: int = Field(default=40, ge=1)
    patience: int = Field(default=6, ge=1)
    batch_size: int = Field(default=512, ge=1)
    learning_rate: float = Field(default=0.001, gt=0)
    weight_decay: float = Field(default=1e-4, ge=0)
    dropout: float = Field(default=0.3, ge=0, lt=1)
    degree_share: float = Field(default=0.3, ge=0, le=1)


class Config(Settings):
    """Both tables; equal on both sides, which `contract` proves."""

    privacy: PrivacySettings = PrivacySettings()
    run: RunSettings = RunSettings()

    @property
    def contract(self) -> str:
        """Digest of everything both sides must agree on."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


def load_config(path: Path | None, overrides: dict[str, Any]) -> Config:
    """Read a TOML file, put `table.key` (or bare key) overrides on top, validate.

    >>> load_config(None, {"epsilon": 1.0, "run.seed": 7}).run.seed
    7
    """
    tables: dict[str, Any] = {}
    if path is not None:
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InputError(f"{path}: not a readable TOML file ({error})") from None
    for key, value in overrides.items():
        table, _, name = _place(key).partition(".")
        tables.setdefault(table, {})[name] = value
    try:
        return Config.model_validate(tables)
    except ValidationError as error:
        raise InputError(_explain(path, error)) from None


def public_delta(num_nodes: int) -> float:
    """Give the delta used when none is given: a power of ten at most 1 / (10 num_nodes).

    It depends on the number of nodes, which is public, and not on the number of edges.

    >>> public_delta(15_374)
    1e-06
    """
    return float(f"1e-{math.ceil(math.log10(num_nodes)) + 1}")


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
    near = difflib.get_close_matches(key.rpartition(".")[2], known, n=1, cutoff=0.4)
    return f"; did you mean '{known[near[0]]}'?" if near else f"; known are {', '.join(known)}"


def _explain(path: Path | None, error: ValidationError) -> str:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    where = f"{path}: " if path else ""
    if first["type"] == "extra_forbidden":
        return f"{where}unknown setting '{key}'{_nearest(key)}"
    return f"{where}setting '{key}': {first['msg']}, got {first['input']!r}"
