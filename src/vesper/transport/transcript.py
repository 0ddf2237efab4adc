"""Transcript: a hash chain of all frames, equal on both sides.

    line n:   n  direction  bytes  digest  chain
    digest   = SHA-256(frame)
    chain(n) = SHA-256(chain(n - 1), direction, digest)        direction: data>label, label>data

Turns are strict, so both sides see the same frames in the same order; two transcripts of one
session differ only if a side received something other than what was sent, or stopped earlier. A
separate thread computes the hashes while frames are in transit.
"""

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from vesper.errors import InputError, VesperError

CHAIN_START = bytes(32)


@dataclass(frozen=True)
class TranscriptLine:
    """One frame in the transcript."""

    number: int
    direction: str
    size: int
    digest: str
    chain: str

    def __str__(self) -> str:
        return f"{self.number}\t{self.direction}\t{self.size}\t{self.digest}\t{self.chain}"


class Transcript:
    """The chain in a file, continued from its last line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = list(read_transcript(path)) if path.exists() else []
        try:
            self._file = path.open("r+" if path.exists() else "x", encoding="ascii")
            self._file.truncate(self._file.seek(sum(len(str(line)) + 1 for line in lines)))
        except OSError as error:
            raise self._unwritable(error) from None
        self._chain = bytes.fromhex(lines[-1].chain) if lines else CHAIN_START
        self._before = [line.digest for line in lines]
        self._bytes = Counter[str]()
        for line in lines:
            self._bytes[line.direction] += line.size
        self._count = len(lines)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="transcript")
        self._last: Future[None] | None = None

    def matches(self, number: int, frame: bytes) -> bool:
        """Whether frame `number` equals this one, or was not recorded before this start."""
        return number >= len(self._before) or self._before[number] == digest_of_frame(frame).hex()

    def record(self, number: int, direction: str, frame: bytes) -> None:
        """Record a frame in the background, unless it is recorded already; `flush` waits for it."""
        if number < self._count:
            return
        self._count += 1
        self._bytes[direction] += len(frame)
        if self._last is not None and self._last.done():
            self._last.result()  # raises its error, if any
        self._last = self._worker.submit(self._write, number, direction, frame)

    def bytes_in(self, direction: str) -> int:
        """Bytes of all frames in this direction, whichever process recorded them."""
        return self._bytes[direction]

    def flush(self) -> None:
        """Wait until everything is on disk."""
        if self._last is not None:
            self._last.result()
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._unwritable(error) from None

    def close(self) -> None:
        """Write everything and close the file.

        Raises:
            VesperError: a line could not be written; a resumed run writes it again.
        """
        self._worker.shutdown()
        try:
            self._file.close()
        except OSError as error:
            raise self._unwritable(error) from None
        if self._last is not None:
            self._last.result()  # raises its error, if any

    def _write(self, number: int, direction: str, frame: bytes) -> None:
        digest = digest_of_frame(frame)
        self._chain = next_link(self._chain, direction, digest)
        line = TranscriptLine(number, direction, len(frame), digest.hex(), self._chain.hex())
        try:
            self._file.write(f"{line}\n")
            self._file.flush()
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> VesperError:
        return VesperError(
            f"{self._path}: the transcript cannot be written ({error.strerror}); check "
            f"permissions and disk space, then continue with --resume"
        )


def digest_of_frame(frame: bytes) -> bytes:
    """Digest of a frame."""
    return sha256(frame).digest()


def next_link(chain: bytes, direction: str, digest: bytes) -> bytes:
    """Next link of the chain."""
    return sha256(chain + direction.encode() + digest).digest()


def read_transcript(path: Path) -> Iterator[TranscriptLine]:
    """Read and verify a transcript; a last line that a crash has truncated is ignored.

    Raises:
        InputError: the file is not a transcript, or its chain is broken.
    """
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a readable transcript ({error})") from None
    chain = CHAIN_START
    for number, row in enumerate(text.split("\n")[:-1]):
        fields = row.split("\t")
        try:
            line = TranscriptLine(int(fields[0]), fields[1], int(fields[2]), *fields[3:])
            chain = next_link(chain, line.direction, bytes.fromhex(line.digest))
        except (ValueError, IndexError, TypeError):
            raise InputError(f"{path}, line {number + 1}: not a line of a transcript") from None
        if line.number != number or line.chain != chain.hex():
            raise InputError(
                f"{path}, line {number + 1}: the chain is broken; the file was changed"
            )
        yield line


def first_difference(
    mine: Path, theirs: Path
) -> tuple[TranscriptLine | None, TranscriptLine | None] | None:
    """Find the first line that differs, as (mine, theirs); None if all lines are equal.

    A side that has already ended there is None in the pair.
    """
    ours, others = list(read_transcript(mine)), list(read_transcript(theirs))
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
