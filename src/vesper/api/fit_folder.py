"""Folder of a fit that charges a ledger: what a killed process leaves, so that nothing is lost.

    LEDGER.fits/IDENTITY/fit.json       name of the run in the ledger, seed, version of the edges
    LEDGER.fits/IDENTITY/releases/      releases, as soon as they are charged
    LEDGER.fits/IDENTITY/model.npz      the fitted model, once it is fitted

The identity is a digest of the settings, the name of the graph, the features, the ids and the
labels; not of the edges, since nothing may depend on whether edges are equal (decision 0024). The
same fit again finds its folder: a finished one is loaded, an unfinished one trains again on the
releases that it has, and draws only those that are missing. Neither is charged twice.

Epochs are not stored: a process that dies while it trains loses its time, and no budget.
"""

import fcntl
import json
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from vesper.api.model_file import Arrays, digest_of_arrays
from vesper.errors import InputError
from vesper.files import replace_file
from vesper.mechanism.release_store import ReleaseStore
from vesper.session.result import new_run_name

FOLDER_SUFFIX = ".fits"
CHANGED_EDGES = (
    "graph '{name}' has other edges than when {path} was charged for it; the result is that of the "
    "earlier edges, at no further cost. To release the edges of today, remove that folder: they "
    "are charged to the same budget"
)


@dataclass(frozen=True)
class FitFolder:
    """The folder of one fit, locked by this process."""

    path: Path
    run: str
    """Name of the run in the ledger."""
    seed: int
    edges: str
    """Keyed digest of the edges when the fit was first started."""

    def warn_if_changed(self, edges: str, *, name: str) -> None:
        """Warn the owner that the edges of today are not those that were released."""
        if self.edges != edges:
            warnings.warn(CHANGED_EDGES.format(name=name, path=self.path), stacklevel=6)

    @property
    def model(self) -> Path:
        """File of the fitted model; there once the fit is finished."""
        return self.path / "model.npz"

    def release_store(self) -> ReleaseStore:
        """Return the store of its releases."""
        return ReleaseStore(self.path / "releases")


def identity_of(facts: dict[str, Any], arrays: Arrays) -> str:
    """Digest what makes two fits the same."""
    text = json.dumps([facts, digest_of_arrays(arrays)], sort_keys=True)
    return blake2b(text.encode(), digest_size=12).hexdigest()


@contextmanager
def open_fit_folder(
    ledger: Path, *, identity: str, what: str, seed: int, edges: str
) -> Iterator[FitFolder]:
    """Open the folder of a fit, or start one with this seed and these edges.

    Args:
        ledger: that is charged.
        identity: of the fit.
        what: start of the name of a new run.
        seed: of a new fit; an earlier one keeps its own.
        edges: digest of the edges of today.

    Raises:
        InputError: another process is at this fit, or the folder cannot be used.
    """
    path = ledger.with_name(ledger.name + FOLDER_SUFFIX) / identity
    try:
        path.parent.mkdir(exist_ok=True, mode=0o700)  # names are digests of data: for nobody else
        path.mkdir(exist_ok=True, mode=0o700)
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise InputError(f"{path}: cannot be created ({error.strerror})") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{path}: another process is fitting the same model; wait until it has finished"
            ) from None
        with _removed_if_refused(path):
            yield _read_or_start(path, what=what, seed=seed, edges=edges)
    finally:
        os.close(lock)


@contextmanager
def _removed_if_refused(path: Path) -> Iterator[None]:
    """Remove the folder if the fit fails before anything is charged."""
    try:
        yield
    except Exception:
        if not any((path / "releases").glob("*")) and not (path / "model.npz").exists():
            shutil.rmtree(path, ignore_errors=True)
        raise


def _read_or_start(path: Path, *, what: str, seed: int, edges: str) -> FitFolder:
    file = path / "fit.json"
    try:
        if not file.exists():
            facts = {"run": new_run_name(what), "seed": seed, "edges": edges}
            replace_file(file, json.dumps(facts).encode())
        facts = json.loads(file.read_text(encoding="utf-8"))
        return FitFolder(path, str(facts["run"]), int(facts["seed"]), str(facts["edges"]))
    except OSError as error:
        raise InputError(f"{file}: cannot be written or read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{file}: damaged ({error}); restore it, or remove the folder to start a new fit, "
            f"which is charged anew"
        ) from None
