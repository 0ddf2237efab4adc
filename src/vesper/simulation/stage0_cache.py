"""Stage-0 cache: runs that differ only in how edges are released share their stage 0.

    entry = checkpoints of both ends before the last epoch of stage 0
    name  = digest of everything that stage 0 depends on: folder, sizes, number of releases,
            schedule, and all settings except `LATER_STAGE_SETTINGS`

In a method with several stages, the first reads no edge, so its weights do not depend on the noise
that comes later. A run that resumes from an entry ends exactly as it would have without it; only
its journal and byte counts lack the epochs that were skipped. Meant for studies, which try many
values of epsilon.
"""

import hashlib
from contextlib import suppress
from pathlib import Path
from threading import Lock

import numpy as np

from vesper.files import read_arrays, replacement_of
from vesper.party.state import Arrays, with_prefix, without_prefix
from vesper.session.checkpoint import Position
from vesper.session.run_spec import RunSpec

LATER_STAGE_SETTINGS = ("epsilon", "delta", "first_share", "accounting", "aggregator", "min_degree")
"""Settings of [privacy] that decide how edges are released, or how that is accounted for."""
CACHE_VERSION = 7
"""Incremented when the same settings and seed train other weights; older entries are ignored."""
MAX_STORED_ENTRIES = 16
"""Most entries in a folder; the newest stay."""


class Stage0Cache:
    """A folder of stage-0 entries, shared by processes.

    Args:
        folder: created when the first entry is stored.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def entry_for(self, folder: Path, run_spec: RunSpec) -> "Stage0Entry":
        """Return the entry for a run on these party folders; it may not be stored yet."""
        return Stage0Entry(self._folder / f"{_name(folder, run_spec)}.npz")


class Stage0Entry:
    """The entry of one run: `data_checkpoints` and `label_checkpoints` are those of its ends."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        self._stored = _read(path)
        self._last: dict[str, tuple[Position, Arrays]] = {}
        self._ends_past_stage0: set[str] = set()
        self.data_checkpoints, self.label_checkpoints = (
            _EndCheckpoints("data", self),
            _EndCheckpoints("label", self),
        )

    def load(self, end: str) -> tuple[Position, Arrays] | None:
        """Return where an end may resume, if the entry is stored."""
        if self._stored is None:
            return None
        position, arrays = self._stored
        return position, without_prefix(end, arrays)

    def save(self, end: str, position: Position, arrays: Arrays) -> None:
        """Note the newest checkpoint of stage 0; store it once both ends are past that stage."""
        if self._stored is not None:
            return
        with self._lock:
            if position.stage == 0:
                self._last[end] = position, arrays
                return
            if end in self._ends_past_stage0:
                return
            self._ends_past_stage0.add(end)
            if len(self._ends_past_stage0) == 2:
                with suppress(OSError):  # such as a full disk: other runs then train stage 0 again
                    self._store()

    def _store(self) -> None:
        (position, data), (_, label) = self._last["data"], self._last["label"]
        where = np.array([position.stage, position.epoch, position.step])
        arrays = with_prefix("data", data) | with_prefix("label", label)
        self._path.parent.mkdir(exist_ok=True)
        with replacement_of(self._path) as file:
            np.savez(file, allow_pickle=False, position=where, **arrays)
        self._last.clear()
        newest = sorted(self._path.parent.glob("*.npz"), key=_written, reverse=True)
        for old in newest[MAX_STORED_ENTRIES:]:
            old.unlink(missing_ok=True)


class _EndCheckpoints:
    """The checkpoints of one end."""

    def __init__(self, name: str, stage0_entry: Stage0Entry) -> None:
        self._name, self._entry = name, stage0_entry

    def load(self) -> tuple[Position, Arrays] | None:
        return self._entry.load(self._name)

    def save(self, position: Position, arrays: Arrays) -> None:
        self._entry.save(self._name, position, arrays)


def _name(folder: Path, run_spec: RunSpec) -> str:
    config, sizes = run_spec.config, run_spec.sizes
    releases = len(run_spec.noise_plan.noise_stds)
    privacy = config.privacy.model_dump(exclude=set(LATER_STAGE_SETTINGS))
    facts = (
        CACHE_VERSION,
        folder.resolve(),
        sizes,
        releases,
        run_spec.schedule,
        privacy,
        config.run,
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def _read(path: Path) -> tuple[Position, Arrays] | None:
    try:
        arrays = read_arrays(path)
    except FileNotFoundError:
        return None
    stage, epoch, step = (int(n) for n in arrays.pop("position"))
    return Position(stage, epoch, step), arrays


def _written(path: Path) -> float:
    """Time of the last change; a file that another process has just deleted counts as oldest."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
