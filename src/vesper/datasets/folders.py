"""Party folders on disk: `OUT/data/` for the data party, `OUT/label/` for the label party.

Everything is written beside its place first and moved there in one step, so that a folder is whole
or absent, whatever kills the process.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vesper.errors import InputError


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Give an empty folder to write into; it appears at `out` whole, or not at all.

    Raises:
        InputError: `out` is there already and is not an empty folder, or cannot be made.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(
            f"{out}: expected a new or empty folder, found something there; name another"
        )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{out.name}.partial-", dir=out.parent))
    except OSError as error:
        raise InputError(
            f"{out}: cannot be written ({error.strerror}); name another folder"
        ) from None
    try:
        partial.chmod(0o777 & ~_umask())
        yield partial
        if out.is_dir():
            out.rmdir()  # empty, as checked above
        os.replace(partial, out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
