"""Snapshots that a data party has served, each with a name, a folder and its releases.

    state/snapshots/NAME/snapshot.json   which graph, from which folder
    state/snapshots/NAME/releases/       its release store

A name is random because it is sent to the label party: a name derived from edges would reveal
something about them. For the same reason a graph has one name forever: serving equal edges under
two names would need their budget twice, and serving them under one name would reveal that no edge
has changed.
"""

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vesper.errors import InputError, VesperError
from vesper.files import replace_file


@dataclass(frozen=True)
class Snapshot:
    """One snapshot that is, or was, served."""

    name: str
    folder: Path
    """Folder of its release store."""


class SnapshotStore:
    """All snapshots of one run, in a folder of the data party."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, graph: str, nodes: str, *, folder: Path) -> Snapshot:
        """Find a snapshot by its graph, or record a new one.

        Args:
            graph: fingerprint of the edges, or digest of the nodes where no edge is read.
            nodes: digest of ids and features.
            folder: where its tables are.

        Raises:
            InputError: the graph was served from another folder, or with other nodes.
        """
        for path in sorted(self._folder.glob("*/snapshot.json")):
            known = _read(path)
            if known["graph"] == graph:
                _refuse_other(known, nodes, folder.resolve(), path)
                return Snapshot(path.parent.name, path.parent)
        name = secrets.token_hex(16)
        facts = {"graph": graph, "nodes": nodes, "folder": str(folder.resolve())}
        _write(self._folder / name / "snapshot.json", facts)
        return Snapshot(name, self._folder / name)


def known_snapshots(folder: Path) -> dict[str, str]:
    """Return the folder of each snapshot by fingerprint, sorted by folder."""
    snapshots = [_read(path) for path in folder.glob("*/snapshot.json")]
    snapshots.sort(key=lambda facts: facts["folder"])
    return {facts["graph"]: facts["folder"] for facts in snapshots}


def _refuse_other(known: dict[str, Any], nodes: str, folder: Path, path: Path) -> None:
    if known["folder"] != str(folder):
        raise InputError(
            f"{folder}: its edges are exactly those of {known['folder']}, which was served before; "
            f"a second snapshot of the same edges would reveal to the peer that none has changed. "
            f"Use that folder; if it was only moved, correct 'folder' in {path}"
        )
    if known["nodes"] != nodes:
        raise InputError(
            f"{folder}: its edges were served before with other ids or features, and are not "
            f"released twice; restore those ids and features"
        )


def _read(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if set(facts) != {"graph", "nodes", "folder"}:
            raise ValueError("expected graph, nodes and folder")
    except (OSError, ValueError, TypeError) as error:
        raise VesperError(f"{path}: cannot be read ({error}); restore it") from None
    return dict(facts)


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
