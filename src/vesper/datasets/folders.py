"""Party folders on disk: `OUT/data/` for the data party, `OUT/label/` for the label party.

Everything is first written to a temporary folder and moved into place at the end, so the party
folders are whole or absent even if the process is killed, or the machine loses power.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from vesper.errors import InputError, VesperError
from vesper.files import partial_folder, remove_abandoned, sync_path, sync_tree


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Yield an empty folder to write into; its content appears at `out` whole, or not at all.

    An `out` that already exists as an empty folder, perhaps a mount or the current folder, is
    filled; its parts are then moved in one by one.

    Raises:
        InputError: `out` exists and is not an empty folder, or cannot be created.
        VesperError: Writing failed, for example because the disk or the memory is full.
    """
    exists = os.path.lexists(out)
    parent, prefix = (out, ".partial-") if exists else (out.parent, f".{out.name}.partial-")
    if exists:
        remove_abandoned(parent, prefix)
        if not out.is_dir() or any(out.iterdir()):
            raise InputError(
                f"{out}: expected a new or empty folder, found existing content; "
                f"choose another path"
            )
    with ExitStack() as stack:
        try:
            parent.mkdir(parents=True, exist_ok=True)
            partial = stack.enter_context(partial_folder(parent, prefix))
        except OSError as error:
            raise InputError(
                f"{out}: cannot be written ({_reason(error)}); choose another folder"
            ) from None
        try:
            partial.chmod(0o777 & ~_umask())
            yield partial
            sync_tree(partial)
            if exists:
                _move_parts(partial, out)
            else:
                partial.replace(out)
            sync_path(parent)
        except OSError as error:
            raise VesperError(
                f"{out}: cannot be written ({_reason(error)}); incomplete output was removed"
            ) from None
        except MemoryError:
            raise VesperError(f"{out}: not enough memory; incomplete output was removed") from None


def _move_parts(partial: Path, out: Path) -> None:
    """Move the content of a folder into an empty one; take it back out if that ends early."""
    try:
        for part in sorted(partial.iterdir()):
            part.replace(out / part.name)
    except BaseException:
        for part in out.iterdir():
            if part != partial:
                part.replace(partial / part.name)
        raise


def _reason(error: OSError) -> str:
    return error.strerror or str(error).splitlines()[0]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
