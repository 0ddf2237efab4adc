"""Power loss: what is on disk after it, from a copy of a folder and the journal of `shim.c`.

Modelled after file systems with a journal (ext4, XFS, btrfs): a sync of any file or folder makes
all earlier changes of names durable; contents of a file are durable only once that file was synced.
What came later is lost, or survives in part: names up to some moment, each file wholly or not at
all.
"""

import os
import shutil
import struct
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

_HEAD = struct.Struct("<cQQII")


@dataclass
class _Names:
    """What is called what: paths of files, by number of the content, and folders."""

    files: dict[str, int] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)

    def copy(self) -> "_Names":
        return _Names(dict(self.files), set(self.folders))

    def rename(self, path: str, target: str) -> None:
        for name in [n for n in self.files if n == path or n.startswith(f"{path}/")]:
            self.files[target + name[len(path) :]] = self.files.pop(name)
        for name in [n for n in self.folders if n == path or n.startswith(f"{path}/")]:
            self.folders.remove(name)
            self.folders.add(target + name[len(path) :])


class RecordedDisk:
    """A folder whose changes are recorded; made before the process that changes it starts."""

    def __init__(self, folder: Path, journal: Path) -> None:
        self.folder, self.journal = folder, journal
        journal.unlink(missing_ok=True)
        self._names, self._contents = _Names(), dict[int, bytearray]()
        self._of_inode: dict[int, int] = {}
        for path in sorted(folder.rglob("*")):
            if path.is_dir():
                self._names.folders.add(str(path))
            elif path.is_file():
                inode = path.stat().st_ino
                number = self._of_inode.setdefault(inode, len(self._contents))
                self._contents[number] = bytearray(path.read_bytes())
                self._names.files[str(path)] = number

    def lose_power(self, chance: Random) -> None:
        """Put the folder into a state in which a power loss may leave it."""
        durable = {number: bytes(each) for number, each in self._contents.items()}
        kept, later = self._names.copy(), list[_Names]()
        for op, inode, offset, first, second in _records(self.journal):
            if op == "S":
                number = self._of_inode.get(inode)
                if number is not None:
                    durable[number] = bytes(self._contents[number])
                kept, later = self._names.copy(), []
            elif op in "WT":
                self._write(op, inode, offset, first)
            else:
                self._change_names(op, inode, first.decode(), second.decode())
                later.append(self._names.copy())
        names = chance.choice([kept] * max(1, len(later)) + later)
        _empty(self.folder)
        for folder in sorted(names.folders):
            Path(folder).mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, number in names.files.items():
            written, synced = bytes(self._contents[number]), durable.get(number, b"")
            survives = written == synced or chance.random() < 0.3
            _restore(Path(name), written if survives else synced)

    def _write(self, op: str, inode: int, offset: int, data: bytes) -> None:
        number = self._of_inode.get(inode)
        if number is None:
            return
        content = self._contents[number]
        size = offset + len(data) if op == "W" else offset
        if len(content) < size:
            content.extend(bytes(size - len(content)))
        if op == "W":
            content[offset:size] = data
        else:
            del content[size:]

    def _change_names(self, op: str, inode: int, path: str, target: str) -> None:
        names = self._names
        if op == "C":
            self._of_inode[inode] = names.files[path] = len(self._contents)
            self._contents[len(self._contents)] = bytearray()
        elif op == "R":
            names.rename(path, target)
        elif op == "L" and path in names.files:
            names.files[target] = names.files[path]
        elif op == "U":
            names.files.pop(path, None)
        elif op == "M":
            names.folders.add(path)
        elif op == "D":
            names.folders.discard(path)


def _records(journal: Path) -> list[tuple[str, int, int, bytes, bytes]]:
    content, found, at = journal.read_bytes() if journal.exists() else b"", [], 0
    while at + _HEAD.size <= len(content):
        op, inode, offset, first, second = _HEAD.unpack_from(content, at)
        at += _HEAD.size
        texts = content[at : at + first], content[at + first : at + first + second]
        at += first + second
        if at <= len(content):
            found.append((op.decode(), inode, offset, *texts))
    return found


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _restore(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
