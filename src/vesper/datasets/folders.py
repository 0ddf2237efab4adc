"""Party folders on disk: `OUT/data/` for the data party, `OUT/label/` for the label party.

Everything is written aside first and moved into place at the end, so that the folders are whole or
absent, whatever kills the process.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from vesper.errors import InputError, VesperError
from vesper.files import partial_folder, remove_abandoned


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Give an empty folder to write into; what is in it appears at `out` whole, or not at all.

    An empty folder that is there already, which may be a mount or the current one, is filled; then
    the parts move in one by one.

    Raises:
        InputError: `out` is there already and is not an empty folder, or cannot be made.
        VesperError: Writing failed: the disk or the memory is full, say.
    """
    is_there = os.path.lexists(out)
    parent, prefix = (out, ".partial-") if is_there else (out.parent, f".{out.name}.partial-")
    if is_there:
        remove_abandoned(parent, prefix)
        if not out.is_dir() or any(out.iterdir()):
            raise InputError(
                f"{out}: expected a new or empty folder, found something there; name another"
            )
    with ExitStack() as stack:
        try:
            parent.mkdir(parents=True, exist_ok=True)
            partial = stack.enter_context(partial_folder(parent, prefix))
        except OSError as error:
            raise InputError(
                f"{out}: cannot be written ({_reason(error)}); name another folder"
            ) from None
        try:
            partial.chmod(0o777 & ~_umask())
            yield partial
            if is_there:
                for part in sorted(partial.iterdir()):
                    os.replace(part, out / part.name)
            else:
                os.replace(partial, out)
        except OSError as error:
            raise VesperError(
                f"{out}: cannot be written ({_reason(error)}); nothing is left there"
            ) from None
        except MemoryError:
            raise VesperError(f"{out}: not enough memory; nothing is left there") from None


def _reason(error: OSError) -> str:
    return error.strerror or str(error).splitlines()[0]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
