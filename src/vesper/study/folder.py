"""Folder of a study, locked by the process that uses it.

| file | content |
| --- | --- |
| `study.json` | name, grid, sources of the data |
| `journal.jsonl` | recently finished cells, while a study runs |
| `results.parquet` | finished cells |
| `data/` | data sets that were simulated or converted |
| `figures/` | output of `vesper study figures` |
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
from vesper.files import remove_abandoned_files, replacement_of
from vesper.study.parameter_grid import Grid

FACTS = "study.json"


@dataclass(frozen=True, kw_only=True)
class Study:
    """Description of the study in a folder."""

    name: str
    small: bool
    grid: Grid
    seeds: int
    sources: Mapping[str, str]
    """Source of each data set, in one line."""

    def as_json(self) -> dict[str, Any]:
        """Return all fields as JSON values."""
        return {
            "study": self.name,
            "small": self.small,
            "seeds": self.seeds,
            "sources": dict(self.sources),
            "grid": json.loads(self.grid.model_dump_json(exclude_none=True)),
        }


def read_study(folder: Path) -> Study:
    """Read the description of the study in a folder.

    Raises:
        InputError: it is not the folder of a study.
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
            f"{path}: expected the description of a study; pass the folder that 'vesper study run "
            f"--out' wrote"
        ) from None


@contextmanager
def open_folder(folder: Path, study: Study) -> Iterator[None]:
    """Lock the folder of a study for the duration of the context; create it if it is new.

    Raises:
        InputError: the folder holds something else, or another process uses it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be created ({error.strerror}); choose another folder"
        ) from None
    remove_abandoned_files(folder, FACTS)
    if (folder / FACTS).exists():
        _refuse_other(folder, read_study(folder), study)
    elif any(folder.iterdir()):
        raise InputError(
            f"{folder}: expected a new or empty folder, or the folder of a study, found something "
            f"else; choose another with --out"
        )
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with replacement_of(folder / FACTS) as file:
            file.write(json.dumps(study.as_json(), indent=2).encode())
        yield
    except BlockingIOError:
        raise InputError(
            f"{folder}: another 'vesper study run' is using this folder; wait for it to finish"
        ) from None
    finally:
        os.close(lock)


def _refuse_other(folder: Path, existing: Study, wanted: Study) -> None:
    names = [f"{each.name}{' --small' if each.small else ''}" for each in (existing, wanted)]
    if names[0] != names[1]:
        raise InputError(
            f"{folder}: holds the study '{names[0]}', expected '{names[1]}'; choose another folder "
            f"with --out"
        )
    for name, source in existing.sources.items():
        if wanted.sources.get(name, source) != source:
            raise InputError(
                f"{folder}: '{name}' was {source} so far, now it is {wanted.sources[name]}; choose "
                f"another folder with --out"
            )
