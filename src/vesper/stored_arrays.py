"""Arrays in NumPy's files, read by one thread at a time.

NumPy reads the header of an array with `ast.literal_eval`. Before Python 3.11.8 all threads count
the depth of its syntax tree in one place, so two that read at once may end in `SystemError: AST
constructor recursion depth mismatch` (python/cpython#106905). Parties of one process are threads.
"""

from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

_READING = RLock()  # of one thread twice, if the garbage collector runs something that reads


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read all arrays of an .npz file into memory.

    Raises:
        OSError, ValueError, KeyError, EOFError, BadZipFile: it is not there, or is damaged.
    """
    with _READING, path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def map_array(path: Path) -> NDArray[Any]:
    """Map the array of an .npy file into memory, read-only; raises as `read_arrays` does."""
    with _READING:
        mapped: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped
