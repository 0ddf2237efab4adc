"""Conversion of public data on disk to the party folders that `vesper prepare` also writes."""

from pathlib import Path

from vesper.datasets.folders import new_folder
from vesper.datasets.loaders import neutral_folder, ogb_products, reddit_npz
from vesper.errors import InputError
from vesper.progress import Progress, no_progress

_LAYOUTS = (neutral_folder, ogb_products, reddit_npz)


def convert(source: Path, out: Path, *, progress: Progress = no_progress) -> None:
    """Recognise the layout of `source` and write `out/data` and `out/label`.

    Edges are copied unchanged, including `time` and `amount`; opening the folder later drops
    self-loops and merges repeats. The label table omits nodes without a label or a split.

    Raises:
        InputError: The layout is unknown, or a file is missing or malformed. Nothing is written.
    """
    if not source.is_dir():
        raise InputError(f"{source}: expected a folder, found none; {_known()}")
    for layout in _LAYOUTS:
        root = layout.find(source)
        if root is not None:
            with new_folder(out) as folder:
                layout.write(root, folder, progress)
            return
    names = sorted(path.name for path in source.iterdir())
    inside = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    raise InputError(f"{source}: layout not recognised, found {inside or 'nothing'}; {_known()}")


def _known() -> str:
    return "pass one of: " + "; ".join(layout.LAYOUT for layout in _LAYOUTS)
