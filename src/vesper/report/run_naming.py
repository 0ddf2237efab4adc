"""Names of runs, as pages and tables show them: never a whole path on this machine."""

import re
from pathlib import Path


def run_name(folder: Path) -> str:
    """Name a run after its folder; a party's state folder, after the folder that it is in.

    >>> run_name(Path("runs/first")), run_name(Path("pair/bank/state"))
    ('first', 'bank')
    >>> run_name(Path("runs/.first.partial-1a2b"))
    'first'
    """
    folder = folder.absolute()
    while folder.name in ("state", "result") and folder.parent.name:
        folder = folder.parent
    return re.sub(r"^\.(.+)\.partial-.*$", r"\1", folder.name)


def distinct_names(folders: list[Path]) -> list[str]:
    """Name several runs so that no two share a name: by as much of their paths as that takes.

    >>> distinct_names([Path("a/run"), Path("b/run"), Path("other")])
    ['a/run', 'b/run', 'other']
    """
    names = [run_name(folder) for folder in folders]
    return [
        name if names.count(name) == 1 else _longer_name(folder, folders)
        for name, folder in zip(names, folders, strict=True)
    ]


def _longer_name(folder: Path, folders: list[Path]) -> str:
    own, others = folder.absolute().parts, [other.absolute().parts for other in folders]
    lengths = range(2, len(own) + 1)
    tails = (own[-length:] for length in lengths)
    tail = next((t for t in tails if sum(o[-len(t) :] == t for o in others) == 1), own)
    return "/".join(tail)
