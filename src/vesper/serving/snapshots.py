"""Snapshots that a data party has served, each with a name, a folder and its releases.

    state/snapshots/NAME/snapshot.json   which graph, from which folder, with which nodes
    state/snapshots/NAME/releases/       its release store

A name is random because it is sent to the label party. It stands for the declared name of the
graph, the folder, and the ids and features in it, never for edges: a folder whose edges were
rewritten in place keeps its name and what was released, and other nodes get another name.
"""

import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vesper.errors import VesperError
from vesper.files import remove_abandoned_files, replace_file


@dataclass(frozen=True)
class Snapshot:
    """One snapshot that is, or was, served."""

    folder: Path
    """Folder of its release store."""
    source: Path
    """Folder of its tables."""

    @property
    def name(self) -> str:
        """Name that the label party receives."""
        return self.folder.name

    @property
    def run(self) -> str:
        """Name of its charges in the ledger."""
        return f"snapshot {self.name}"


class SnapshotStore:
    """All snapshots of one run, in a folder of the data party."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_or_add(self, graph: str, nodes: str, *, folder: Path) -> Snapshot:
        """Find a snapshot, or record a new one.

        Args:
            graph: declared name of the graph; empty where no edge is read.
            nodes: digest of ids and features.
            folder: where its tables are.
        """
        facts = {"graph": graph, "nodes": nodes, "folder": str(folder.resolve())}
        for path in sorted(self._folder.glob("*/snapshot.json")):
            if _read(path) == facts:
                return Snapshot(path.parent, folder)
        _remove_half_made(self._folder)
        path = self._folder / secrets.token_hex(16) / "snapshot.json"
        _write(path, facts)
        return Snapshot(path.parent, folder)


def known_snapshots(folder: Path) -> list[Snapshot]:
    """List the snapshots in a folder, sorted by where their tables are."""
    found = [
        Snapshot(path.parent, Path(_read(path)["folder"]))
        for path in folder.glob("*/snapshot.json")
    ]
    return sorted(found, key=lambda snapshot: str(snapshot.source))


def _read(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if set(facts) != {"graph", "nodes", "folder"}:
            raise ValueError("expected graph, nodes and folder")
    except (OSError, ValueError, TypeError) as error:
        raise VesperError(f"{path}: cannot be read ({error}); restore it") from None
    return dict(facts)


def _remove_half_made(folder: Path) -> None:
    """Remove what processes have left that were killed before a snapshot was recorded."""
    for path in folder.glob("*"):
        if path.is_dir() and not (path / "snapshot.json").exists():
            remove_abandoned_files(path)
            with suppress(OSError):  # it holds something else, which is not for us to delete
                path.rmdir()


def _write(path: Path, facts: dict[str, str]) -> None:
    """Write atomically, and to disk before anything is charged under the name."""
    try:
        path.parent.mkdir(parents=True, mode=0o700)
        replace_file(path, json.dumps(facts, indent=2).encode())
        for folder in (path.parent, path.parent.parent):
            handle = os.open(folder, os.O_RDONLY)
            os.fsync(handle)
            os.close(handle)
    except OSError as error:
        raise VesperError(f"{path}: cannot be written ({error.strerror}); free space") from None
