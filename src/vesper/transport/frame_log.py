"""Log of all frames, on disk as long as they may be needed: a run survives kill -9 of either side.

    record = direction (u8), number (u64), length (u32), CRC-32 of the content (u32), content

A record is complete before its frame is sent, or before the session continues from it. Frames from
before the first checkpoint (the opening of a session) are stored permanently, the others as long as
they are newer than the last checkpoint but one. A record that a crash has truncated at the end of a
file is ignored.
"""

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from vesper.errors import VesperError

SENT, RECEIVED = 0, 1
_HEAD = struct.Struct("<BQII")


@dataclass(frozen=True)
class _FrameLocation:
    segment: int
    offset: int
    length: int


class FrameLog:
    """The log in `folder`, which is created if it does not exist.

    Raises:
        VesperError: the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._locations: tuple[dict[int, _FrameLocation], dict[int, _FrameLocation]] = ({}, {})
        try:
            folder.mkdir(parents=True, exist_ok=True)
            segments = self._needed(sorted(int(path.stem) for path in folder.glob("*.frames")))
            for segment in segments:
                self._read(segment)
            self._segment = segments[-1] if segments else 0
            self._file = os.open(self._path(self._segment), os.O_RDWR | os.O_CREAT, 0o600)
            self._end = os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            raise self._unwritable(error) from None

    def count(self, direction: int) -> int:
        """Number of frames in this direction, as far as the log knows."""
        return max(self._locations[direction], default=-1) + 1

    def append(self, direction: int, number: int, frame: bytes) -> None:
        """Write a frame."""
        head = _HEAD.pack(direction, number, len(frame), crc32(frame))
        start = self._end + _HEAD.size
        try:
            written = os.pwritev(self._file, [head, frame], self._end) - _HEAD.size
            if written < len(frame):  # the disk is full: writing the rest raises the error
                os.pwrite(self._file, frame[max(written, 0) :], start + max(written, 0))
        except OSError as error:
            os.ftruncate(self._file, self._end)
            raise self._unwritable(error) from None
        self._locations[direction][number] = _FrameLocation(self._segment, start, len(frame))
        self._end = start + len(frame)

    def frame(self, direction: int, number: int) -> bytes | None:
        """Return a frame; None if it is not stored."""
        location = self._locations[direction].get(number)
        if location is None:
            return None
        with self._path(location.segment).open("rb") as file:
            file.seek(location.offset)
            return file.read(location.length)

    @property
    def has_checkpoints(self) -> bool:
        """Whether `start_segment` was ever called."""
        return self._segment > 0

    def sync(self) -> None:
        """Wait until everything is on disk."""
        try:
            os.fsync(self._file)
        except OSError as error:
            raise self._unwritable(error) from None

    def start_segment(self) -> None:
        """Start a new segment at a checkpoint; drop the segment before the previous checkpoint.

        Segment 0, the opening of the session, is never dropped.
        """
        try:
            next_file = os.open(self._path(self._segment + 1), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._unwritable(error) from None
        os.close(self._file)
        dropped = self._segment - 1
        self._segment += 1
        self._file = next_file
        self._end = os.lseek(self._file, 0, os.SEEK_END)
        if dropped > 0:
            self._path(dropped).unlink(missing_ok=True)
            for locations in self._locations:
                for number in [n for n, each in locations.items() if each.segment == dropped]:
                    del locations[number]

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _needed(self, segments: list[int]) -> list[int]:
        """Remove what a process that was killed in `start_segment` should have dropped."""
        for dropped in segments[1:-2]:
            self._path(dropped).unlink(missing_ok=True)
        return segments[:1] + segments[1:][-2:]

    def _read(self, segment: int) -> None:
        path = self._path(segment)
        with path.open("rb+") as file:
            end = 0
            while len(head := file.read(_HEAD.size)) == _HEAD.size:
                direction, number, length, check = _HEAD.unpack(head)
                content = file.read(length)
                if len(content) < length or crc32(content) != check or direction > RECEIVED:
                    break
                location = _FrameLocation(segment, end + _HEAD.size, length)
                self._locations[direction][number] = location
                end += _HEAD.size + length
            file.truncate(end)

    def _path(self, segment: int) -> Path:
        return self._folder / f"{segment:06d}.frames"

    def _unwritable(self, error: OSError) -> VesperError:
        return VesperError(
            f"{self._folder}: frames cannot be written ({error.strerror}); nothing was sent. "
            f"Check permissions and disk space, then continue with --resume"
        )
