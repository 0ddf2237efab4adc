"""Frames that crossed, on disk until nobody can need them: a run survives kill -9 of either side.

    record = direction (u8), number (u64), length (u32), CRC-32 of the content (u32), content

Records are written whole before a frame is sent, or the session goes on from it. Frames from before
the first mark (the opening of a session) are kept for good; of the others, those since the mark
before the last. A record that a crash has cut off at the end of a file is as if it had never been.
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
    """The log in `folder`, made if there is none.

    Raises:
        VesperError: the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places: tuple[dict[int, _FrameLocation], dict[int, _FrameLocation]] = ({}, {})
        try:
            folder.mkdir(parents=True, exist_ok=True)
            segments = sorted(int(path.stem) for path in folder.glob("*.frames"))
            for segment in segments:
                self._read(segment)
            self._segment = segments[-1] if segments else 0
            self._file = os.open(self._path(self._segment), os.O_RDWR | os.O_CREAT, 0o600)
            self._end = os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            raise self._unwritable(error) from None

    def count(self, direction: int) -> int:
        """How many frames went this way, as far as this log knows."""
        return max(self._places[direction], default=-1) + 1

    def append(self, direction: int, number: int, frame: bytes) -> None:
        """Write a frame down."""
        head = _HEAD.pack(direction, number, len(frame), crc32(frame))
        start = self._end + _HEAD.size
        try:
            written = os.pwritev(self._file, [head, frame], self._end) - _HEAD.size
            if written < len(frame):  # the disk is full: the rest says why
                os.pwrite(self._file, frame[max(written, 0) :], start + max(written, 0))
        except OSError as error:
            os.ftruncate(self._file, self._end)
            raise self._unwritable(error) from None
        self._places[direction][number] = _FrameLocation(self._segment, start, len(frame))
        self._end = start + len(frame)

    def frame(self, direction: int, number: int) -> bytes | None:
        """Give a frame back; None when it is not kept."""
        place = self._places[direction].get(number)
        if place is None:
            return None
        with self._path(place.segment).open("rb") as file:
            file.seek(place.offset)
            return file.read(place.length)

    @property
    def has_checkpoints(self) -> bool:
        """Whether a new part was ever begun."""
        return self._segment > 0

    def sync(self) -> None:
        """Wait until everything is on disk."""
        try:
            os.fsync(self._file)
        except OSError as error:
            raise self._unwritable(error) from None

    def start_segment(self) -> None:
        """Begin a new part; frames before the last mark but the opening are forgotten."""
        try:
            following = os.open(self._path(self._segment + 1), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._unwritable(error) from None
        os.close(self._file)
        forgotten = self._segment - 1
        self._segment += 1
        self._file = following
        self._end = os.lseek(self._file, 0, os.SEEK_END)
        if forgotten > 0:
            self._path(forgotten).unlink(missing_ok=True)
            for places in self._places:
                for number in [n for n, place in places.items() if place.segment == forgotten]:
                    del places[number]

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def _read(self, segment: int) -> None:
        path = self._path(segment)
        with path.open("rb+") as file:
            end = 0
            while len(head := file.read(_HEAD.size)) == _HEAD.size:
                direction, number, length, check = _HEAD.unpack(head)
                content = file.read(length)
                if len(content) < length or crc32(content) != check or direction > RECEIVED:
                    break
                self._places[direction][number] = _FrameLocation(segment, end + _HEAD.size, length)
                end += _HEAD.size + length
            file.truncate(end)

    def _path(self, segment: int) -> Path:
        return self._folder / f"{segment:06d}.frames"

    def _unwritable(self, error: OSError) -> VesperError:
        return VesperError(
            f"{self._folder}: frames cannot be written ({error.strerror}); nothing was sent. Make "
            f"room, then go on with --resume"
        )
