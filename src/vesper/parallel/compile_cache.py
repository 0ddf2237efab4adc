"""Machine code for loops, kept on disk, and right when several processes start at once.

    Numba    an index names code k, then code k is written      k = 1, 2, ..
    here     one file for a function, source, types and machine, with what it is for and a digest

Numba's files are not safe. Of two processes that compile for different types at once, both may
write code 1, and the index then names code for other types; between the two writes a number may
stand for code of an older source (numba issues 4807 and 10128). A kernel would run on memory that
it was not made for, in every later process too. Numba also looks for changes in a function's own
file alone, although code of the functions that it calls is part of its own: here any change in
`SOURCES` counts, also one while a process runs.
"""

import hashlib
import os
import pickle
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

PACKAGE = Path(__file__).parent.parent
SOURCES = ("graph", "mechanism", "model", "parallel")
"""Packages with compiled functions, and with what these call or take numbers from."""
COMPILERS = ("numba", "llvmlite", "numpy")

config = import_module("numba.core.config")  # these have no type hints
serialize = import_module("numba.core.serialize")

Function = TypeVar("Function", bound=Callable[..., Any])


def cached_njit(function: Function) -> Function:
    """Compile when first called, to run without Python's lock; keep the code for later processes.

    Where there is no folder to write to, or no source to tell changes by, each process compiles for
    itself.
    """
    if config.DISABLE_JIT:
        return function
    made: Any = njit(nogil=True)(function)
    stamp = source_stamp()
    with suppress(RuntimeError):  # Numba found no folder to write to
        if stamp is not None:
            made.enable_caching()
            _use_own_cache(made._cache, stamp)
    kept: Function = made
    return kept


def _use_own_cache(cache: Any, stamp: str) -> None:
    """Have Numba's cache of a function use our files, and go on where they cannot be written."""
    cache._cache_file = CompiledCodeCache(Path(cache.cache_path), cache._impl.filename_base, stamp)
    save = cache.save_overload

    def save_if_possible(signature: Any, code: Any) -> None:
        with suppress(OSError):
            save(signature, code)

    cache.save_overload = save_if_possible


def source_stamp() -> str | None:
    """Digest of all source that compiled code may come from, as it is now; None: none is found."""
    try:
        states = [(path, os.stat(path)) for path in _sources(PACKAGE)]
        return _stamp_of(tuple((path, s.st_mtime_ns, s.st_size) for path, s in states))
    except OSError:  # a file went away meanwhile
        return None


@lru_cache(maxsize=2)
def _sources(package: Path) -> list[str]:
    """Look for files once: one that comes later counts when a file that is here imports it."""
    found = (path for each in SOURCES for path in sorted((package / each).rglob("*.py")))
    # Editors lock files by links with a dot in front that lead nowhere.
    return [str(path) for path in found if path.is_file() and not path.name.startswith(".")]


@lru_cache(maxsize=2)
def _stamp_of(states: tuple[tuple[str, int, int], ...]) -> str | None:
    """Read the files once for each state that they are in."""
    versions = [import_module(name).__version__ for name in COMPILERS]
    digest = hashlib.sha256(" ".join(versions).encode())
    for path, _, _ in states:
        text = Path(path).read_bytes()
        digest.update(f"{path.removeprefix(str(PACKAGE))} {len(text)} ".encode() + text)
    return digest.hexdigest()[:16] if states else None


class CompiledCodeCache:
    """Code of one function, a file for each combination of types and machine.

    Args:
        folder: where to keep them.
        base: how their names start: the function, and where it stands.
        stamp: of the source when the function was read.
    """

    def __init__(self, folder: Path, base: str, stamp: str) -> None:
        self._folder, self._base, self._stamp = folder, base, stamp

    def save(self, key: object, data: object) -> None:
        """Keep code, if its source is still what it was read from.

        Raises:
            OSError: it cannot be written.
        """
        if source_stamp() != self._stamp:
            return
        code = serialize.dumps((key, data))
        path = self._path_of(key)
        partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
        try:
            partial.write_bytes(hashlib.sha256(code).digest() + code)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        self._remove_stale_files()

    def load(self, key: object) -> Any:
        """Give the code for exactly this key, whole as it was written, or None."""
        if source_stamp() != self._stamp:
            return None
        with suppress(OSError):
            kept = self._path_of(key).read_bytes()
            digest, code = kept[:32], kept[32:]
            if hashlib.sha256(code).digest() == digest:
                return _unpacked(code, key)
        return None

    def flush(self) -> None:
        """Let go of everything, as Numba may ask."""
        for path in self._files():
            path.unlink(missing_ok=True)

    def _remove_stale_files(self) -> None:
        """Remove code of the same function from another source, and what Numba left of it."""
        for path in self._files():
            if f".{self._stamp}." not in path.name:
                path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        """All of the function, wherever in its file it stood."""
        return list(self._folder.glob(f"{self._base.rpartition('-')[0]}-*.nb*"))

    def _path_of(self, key: object) -> Path:
        """One place a key: keys of one text share it, and are told apart by what is inside."""
        return self._folder / f"{self._base}.{self._stamp}.{_digest_of(key)}.nbc"


def _unpacked(code: bytes, key: object) -> Any:
    try:
        made_for, data = pickle.loads(code)
    except Exception:  # whatever keeps it from being read, compiling is the answer
        return None
    return data if made_for == key else None


def _digest_of(key: object) -> str:
    return hashlib.sha256(repr(key).encode()).hexdigest()[:16]
