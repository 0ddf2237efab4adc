"""Cache of compiled loops on disk that is safe when several processes start at once.

    Numba    an index refers to code k, then code k is written      k = 1, 2, ..
    here     one file per function, source, types and machine; it holds its own key and a digest

Numba's cache files are not safe. When two processes compile for different types at the same time,
both may write code 1, and the index then refers to code for the wrong types; between the two writes
a number may refer to code of an older source (numba issues 4807 and 10128). A kernel would then run
on memory that it was not compiled for, in every later process as well. Numba also checks only the
function's own file for changes, although the code of the functions that it calls is compiled into
it. Here any change in `SOURCES` invalidates the cache, even one made while a process runs.
"""

import hashlib
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

from vesper.files import replacement_of

PACKAGE = Path(__file__).parent.parent
SOURCES = ("graph", "mechanism", "model", "parallel")
"""Packages with compiled functions, and with the code and constants that these use."""
COMPILERS = ("numba", "llvmlite", "numpy")

config = import_module("numba.core.config")  # these have no type hints
serialize = import_module("numba.core.serialize")

Function = TypeVar("Function", bound=Callable[..., Any])


def cached_njit(function: Function) -> Function:
    """Compile at the first call, to run without the GIL, and cache the code for later processes.

    Without a writable folder, or without source files to detect changes by, each process compiles
    for itself.
    """
    if config.DISABLE_JIT:
        return function
    compiled: Any = njit(nogil=True)(function)
    stamp = source_stamp()
    with suppress(RuntimeError):  # Numba found no folder to write to
        if stamp is not None:
            compiled.enable_caching()
            _use_own_cache(compiled._cache, stamp)
    typed: Function = compiled
    return typed


def _use_own_cache(cache: Any, stamp: str) -> None:
    """Make Numba's cache of a function use our files; ignore files that cannot be written."""
    cache._cache_file = CompiledCodeCache(Path(cache.cache_path), cache._impl.filename_base, stamp)
    save = cache.save_overload

    def save_if_possible(signature: Any, code: Any) -> None:
        with suppress(OSError):
            save(signature, code)

    cache.save_overload = save_if_possible


def source_stamp() -> str | None:
    """Current digest of all source that compiled code may come from; None without source files."""
    try:
        states = [(str(path), path.stat()) for path in _sources(PACKAGE)]
        return _stamp_of(tuple((path, s.st_mtime_ns, s.st_size) for path, s in states))
    except OSError:  # a file went away meanwhile
        return None


@lru_cache(maxsize=2)
def _sources(package: Path) -> list[Path]:
    """List the files once; a file added later counts when a listed file changes to import it."""
    paths = (path for each in SOURCES for path in sorted((package / each).rglob("*.py")))
    # Editors lock files with dangling symbolic links whose names start with a dot.
    return [path for path in paths if path.is_file() and not path.name.startswith(".")]


@lru_cache(maxsize=2)
def _stamp_of(states: tuple[tuple[str, int, int], ...]) -> str | None:
    """Digest the files; they are read again only when their times or sizes change."""
    versions = [import_module(name).__version__ for name in COMPILERS]
    digest = hashlib.sha256(" ".join(versions).encode())
    for path, _, _ in states:
        text = Path(path).read_bytes()
        digest.update(f"{path.removeprefix(str(PACKAGE))} {len(text)} ".encode() + text)
    return digest.hexdigest()[:16] if states else None


class CompiledCodeCache:
    """Compiled code of one function: one file per combination of types and machine.

    Args:
        folder: where the files are stored.
        base: prefix of their names: the function and its line number.
        stamp: digest of the source when the function was imported.
    """

    def __init__(self, folder: Path, base: str, stamp: str) -> None:
        self._folder, self._base, self._stamp = folder, base, stamp

    def save(self, key: object, data: object) -> None:
        """Store code, unless the source has changed since the function was imported.

        Raises:
            OSError: the file cannot be written.
        """
        if source_stamp() != self._stamp:
            return
        code = serialize.dumps((key, data))
        path = self._path_of(key)
        with replacement_of(path) as file:
            file.write(hashlib.sha256(code).digest() + code)
        self._remove_stale_files()

    def load(self, key: object) -> Any:
        """Return the code for exactly this key if its file is intact, else None."""
        if source_stamp() != self._stamp:
            return None
        with suppress(OSError):
            content = self._path_of(key).read_bytes()
            digest, code = content[:32], content[32:]
            if hashlib.sha256(code).digest() == digest:
                return _unpacked(code, key)
        return None

    def flush(self) -> None:
        """Remove all files of the function; part of Numba's cache interface."""
        for path in self._files():
            path.unlink(missing_ok=True)

    def _remove_stale_files(self) -> None:
        """Remove code that was compiled from other source, and files of Numba's own cache."""
        for path in self._files():
            if f".{self._stamp}." not in path.name:
                path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        """All files of the function, whatever line it was on."""
        return list(self._folder.glob(f"{self._base.rpartition('-')[0]}-*.nb*"))

    def _path_of(self, key: object) -> Path:
        """File of a key; keys with equal text share it and are distinguished by its content."""
        return self._folder / f"{self._base}.{self._stamp}.{_digest_of(key)}.nbc"


def _unpacked(code: bytes, key: object) -> Any:
    try:
        made_for, data = pickle.loads(code)
    except Exception:  # whatever the reason that it cannot be read, it is compiled again
        return None
    return data if made_for == key else None


def _digest_of(key: object) -> str:
    return hashlib.sha256(repr(key).encode()).hexdigest()[:16]
