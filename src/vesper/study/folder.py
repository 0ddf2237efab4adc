"""The folder of a study: what it is, who works in it, and what it has found.

| file | what |
| --- | --- |
| `study.json` | name, grid, where the data comes from |
| `journal.jsonl` | finished cells, while a study runs |
| `results.parquet` | finished cells |
| `data/` | sets that were simulated or converted |
| `figures/` | what `vesper study figures` draws |
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vesper.errors import InputError
from vesper.study.parameter_grid import Grid

FACTS = "study.json"


@dataclass(frozen=True, kw_only=True)
class Study:
    """What a folder is about."""

    name: str
    small: bool
    grid: Grid
    seeds: int
    sources: Mapping[str, str]
    """Where each set comes from, in a line."""

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "study": self.name,
            "small": self.small,
            "seeds": self.seeds,
            "sources": dict(self.sources),
            "grid": json.loads(self.grid.model_dump_json(exclude_none=True)),
        }


def read_study(folder: Path) -> Study:
    """Read what a folder is about.

    Raises:
        InputError: it is no folder of a study.
    """
    path = folder / FACTS
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        return Study(
            name=facts["study"],
            small=facts["small"],
            grid=Grid.model_validate(facts["grid"]),
            seeds=facts["seeds"],
            sources=facts["sources"],
        )
    except (OSError, ValueError, KeyError, TypeError, ValidationError):
        raise InputError(
            f"{path}: expected what a study says of itself; give the folder that 'vesper study "
            f"run --out' made"
        ) from None


@contextmanager
def open_folder(folder: Path, study: Study) -> Iterator[None]:
    """Work in the folder of a study, alone; a new one is made, one begun before is gone on with.

    Raises:
        InputError: something else is in there, or somebody works in it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror}); name another") from None
    if (folder / FACTS).exists():
        _refuse_other(folder, read_study(folder), study)
    elif any(folder.iterdir()):
        raise InputError(
            f"{folder}: expected a new or empty folder, or one of a study, found something else; "
            f"name another with --out"
        )
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        aside = folder / f".{FACTS}.partial"
        aside.write_text(json.dumps(study.as_json(), indent=2), encoding="utf-8")
        os.replace(aside, folder / FACTS)
        yield
    except BlockingIOError:
        raise InputError(f"{folder}: another 'vesper study run' works in it; wait for it") from None
    finally:
        os.close(lock)


def _refuse_other(folder: Path, existing: Study, wanted: Study) -> None:
    names = [f"{each.name}{' --small' if each.small else ''}" for each in (existing, wanted)]
    if names[0] != names[1]:
        raise InputError(
            f"{folder}: holds the study '{names[0]}', expected '{names[1]}'; name another folder "
            f"with --out"
        )
    for name, source in existing.sources.items():
        if wanted.sources.get(name, source) != source:
            raise InputError(
                f"{folder}: '{name}' was {source} so far, now it is {wanted.sources[name]}; name "
                f"another folder with --out"
            )
