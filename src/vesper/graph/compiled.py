"""Machine code for loops, kept on disk, and right when several processes start at once.

    Numba    an index names code k, then code k is written      k = 1, 2, ..
    here     one file for a function, source, types and machine, with what it is for and a digest

Numba's files are not safe. Of two processes that compile for different types at once, both may
write code 1, and the index then names code for other types; between the two writes a number may
stand for code of an older source (numba issues 4807 and 10128). A kernel would run on memory that
it was not made for, in every later process too. Numba also looks for changes in a function's own
file alone, although code of the functions that it calls is part of its own: here any change in
`SOURCES` counts.
"""

import hashlib
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

from vesper.whole_file import write_whole

PACKAGE = Path(__file__).parent.parent
SOURCES = ("graph", "mechanism", "model")
"""Packages with compiled functions, and with what these call or take numbers from."""

serialize = import_module("numba.core.serialize")  # it has no type hints

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile when first called, to run without Python's lock; keep the code for later processes.

    Where there is no folder to write to, each process compiles for itself.
    """
    made: Any = njit(nogil=True)(function)
    with suppress(RuntimeError):  # Numba found no folder to write to
        made.enable_caching()
        kept = made._cache
        kept._cache_file = CodeFiles(Path(kept.cache_path), kept._impl.filename_base)
    return made  # type: ignore[no-any-return]


@cache
def source_stamp() -> str:
    """Digest of all source that compiled code may come from."""
    digest = hashlib.sha256()
    for package in SOURCES:
        for path in sorted((PACKAGE / package).rglob("*.py")):
            text = path.read_bytes()
            digest.update(f"{path.relative_to(PACKAGE).as_posix()} {len(text)} ".encode() + text)
    return digest.hexdigest()[:16]


class CodeFiles:
    """Code of one function, a file for each combination of types and machine.

    Args:
        folder: where to keep them.
        base: how their names start; no two functions share it.
        stamp: of the source.
    """

    def __init__(self, folder: Path, base: str, stamp: str | None = None) -> None:
        self._folder, self._base, self._stamp = folder, base, stamp or source_stamp()

    def save(self, key: object, data: object) -> None:
        """Keep code; on a full disk it is run all the same, and not kept."""
        code = serialize.dumps((key, data))
        with suppress(OSError):
            write_whole(self._path_of(key), hashlib.sha256(code).digest() + code)
            for path in self._folder.glob(f"{self._base}.*.nbc"):
                if not path.name.startswith(f"{self._base}.{self._stamp}."):
                    path.unlink(missing_ok=True)  # of an older source

    def load(self, key: object) -> Any:
        """Give the code for exactly this key, whole as it was written, or None."""
        with suppress(OSError):
            kept = self._path_of(key).read_bytes()
            digest, code = kept[:32], kept[32:]
            if hashlib.sha256(code).digest() == digest:
                made_for, data = pickle.loads(code)
                return data if made_for == key else None
        return None

    def flush(self) -> None:
        """Let go of everything, as Numba may ask."""
        for path in self._folder.glob(f"{self._base}.*.nbc"):
            path.unlink(missing_ok=True)

    def _path_of(self, key: object) -> Path:
        """One place a key: keys of one text share it, and are told apart by what is inside."""
        return self._folder / f"{self._base}.{self._stamp}.{_digest_of(key)}.nbc"


def _digest_of(key: object) -> str:
    return hashlib.sha256(repr(key).encode()).hexdigest()[:16]
