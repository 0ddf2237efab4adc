"""Receipts: a hash chain of everything that crossed, the same at both sides.

    line n:   n  direction  bytes  digest  chain
    chain(n) = blake2b(chain(n - 1), direction, digest)        direction: data>label, label>data

Turns are strict, so both sides see the same frames in the same order; two files of one session
differ only where somebody received something else than was sent, or one stopped earlier.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from vesper.errors import InputError, VesperError

START = bytes(16)


@dataclass(frozen=True)
class Line:
    """One frame that crossed."""

    number: int
    direction: str
    size: int
    digest: str
    chain: str

    def __str__(self) -> str:
        return f"{self.number}\t{self.direction}\t{self.size}\t{self.digest}\t{self.chain}"


class Receipts:
    """The chain in a file, continued where it ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = list(read_receipts(path)) if path.exists() else []
        try:
            self._file = path.open("r+" if path.exists() else "x", encoding="ascii")
            self._file.truncate(self._file.seek(sum(len(str(line)) + 1 for line in self._lines)))
        except OSError as error:
            raise VesperError(f"{path}: cannot be written ({error.strerror})") from None
        self._chain = bytes.fromhex(self._lines[-1].chain) if self._lines else START
        self._digests = [line.digest for line in self._lines]
        self._lines.clear()

    def note(self, number: int, direction: str, digest: bytes, size: int) -> bool:
        """Write down what crosses; False when it was noted before as something else."""
        if number < len(self._digests):
            return self._digests[number] == digest.hex()
        self._chain = chained(self._chain, direction, digest)
        line = Line(number, direction, size, digest.hex(), self._chain.hex())
        try:
            self._file.write(f"{line}\n")
            self._file.flush()
        except OSError as error:
            raise VesperError(f"{self._path}: cannot be written ({error.strerror})") from None
        self._digests.append(line.digest)
        return True

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def chained(chain: bytes, direction: str, digest: bytes) -> bytes:
    """Next link of the chain."""
    return blake2b(chain + direction.encode() + digest, digest_size=16).digest()


def read_receipts(path: Path) -> Iterator[Line]:
    """Read and verify a file; a last line that a crash cut off does not count.

    Raises:
        InputError: the file is none, or its chain is broken.
    """
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a readable file of receipts ({error})") from None
    chain = START
    for number, row in enumerate(text.split("\n")[:-1]):
        fields = row.split("\t")
        try:
            line = Line(int(fields[0]), fields[1], int(fields[2]), *fields[3:])
            chain = chained(chain, line.direction, bytes.fromhex(line.digest))
        except (ValueError, IndexError, TypeError):
            raise InputError(f"{path}, line {number + 1}: not a receipt") from None
        if line.number != number or line.chain != chain.hex():
            raise InputError(
                f"{path}, line {number + 1}: the chain is broken; the file was changed"
            )
        yield line


def first_difference(mine: Path, theirs: Path) -> tuple[Line | None, Line | None] | None:
    """Find the first line that differs; None for a side that ends there; None: all the same."""
    ours, others = list(read_receipts(mine)), list(read_receipts(theirs))
    for left, right in zip(ours, others, strict=False):
        if left != right:
            return left, right
    if len(ours) != len(others):
        shorter = min(len(ours), len(others))
        return (
            ours[shorter] if len(ours) > shorter else None,
            others[shorter] if len(others) > shorter else None,
        )
    return None
