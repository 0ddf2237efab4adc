"""The chain of all frames: equal on both sides, continued after a restart, never silently wrong."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vesper.errors import InputError, VesperError
from vesper.transport.transcript import (
    Transcript,
    digest_of_frame,
    first_difference,
    read_transcript,
)


def write_transcript(path: Path, frames: list[tuple[str, bytes]]) -> Path:
    transcript = Transcript(path)
    for number, (direction, frame) in enumerate(frames):
        transcript.record(number, direction, frame)
    transcript.close()
    return path


FRAMES = [("data>label", b"a"), ("label>data", b"bb"), ("data>label", b"ccc")]


def test_two_sides_of_one_session_have_the_same_chain(tmp_path: Path) -> None:
    mine, theirs = (
        write_transcript(tmp_path / "a", FRAMES),
        write_transcript(tmp_path / "b", FRAMES),
    )
    assert first_difference(mine, theirs) is None
    assert [line.size for line in read_transcript(mine)] == [1, 2, 3]


def test_the_first_difference_is_found(tmp_path: Path) -> None:
    mine = write_transcript(tmp_path / "a", FRAMES)
    theirs = write_transcript(tmp_path / "b", [FRAMES[0], ("label>data", b"BB"), FRAMES[2]])
    difference = first_difference(mine, theirs)
    assert difference is not None
    assert [line.number for line in difference if line] == [1, 1]
    shorter = write_transcript(tmp_path / "c", FRAMES[:2])
    difference = first_difference(mine, shorter)
    assert difference is not None
    assert difference[0] is not None
    assert difference[0].number == 2
    assert difference[1] is None


def test_a_file_continues_after_a_restart_without_a_truncated_line(tmp_path: Path) -> None:
    path = write_transcript(tmp_path / "a", FRAMES[:2])
    path.write_text(path.read_text() + "2\tdata>lab")
    transcript = Transcript(path)
    assert transcript.matches(1, b"bb")
    assert not transcript.matches(1, b"BB")
    assert transcript.matches(2, b"ccc")  # not recorded yet
    transcript.record(1, *FRAMES[1])  # recorded already
    transcript.record(2, *FRAMES[2])
    transcript.close()
    assert path.read_text() == write_transcript(tmp_path / "b", FRAMES).read_text()


@contextmanager
def full_disk(largest_file: int) -> Iterator[None]:
    """Let writing beyond this size fail, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 40])
def test_a_full_disk_is_one_message_and_the_file_continues_after_it(
    tmp_path: Path, room: int
) -> None:
    path = write_transcript(tmp_path / "a", FRAMES[:1])
    transcript = Transcript(path)
    with full_disk(path.stat().st_size + room):
        transcript.record(1, *FRAMES[1])
        for call in (transcript.flush, transcript.close):
            with pytest.raises(VesperError, match=r"the transcript cannot be written .*--resume"):
                call()
    transcript = Transcript(path)
    for number in (1, 2):
        transcript.record(number, *FRAMES[number])
    transcript.close()
    assert path.read_text() == write_transcript(tmp_path / "b", FRAMES).read_text()


def test_bytes_are_counted_over_all_processes(tmp_path: Path) -> None:
    path = write_transcript(tmp_path / "a", FRAMES[:2])
    transcript = Transcript(path)
    transcript.record(1, *FRAMES[1])  # recorded already
    transcript.record(2, *FRAMES[2])
    assert transcript.bytes_in("data>label") == 4
    assert transcript.bytes_in("label>data") == 2
    transcript.close()


@pytest.mark.parametrize("change", ["digest", "direction", "line"])
def test_a_changed_file_is_detected(tmp_path: Path, change: str) -> None:
    path = write_transcript(tmp_path / "a", FRAMES)
    lines = path.read_text().splitlines()
    if change == "digest":
        lines[1] = lines[1].replace(digest_of_frame(b"bb").hex(), digest_of_frame(b"xx").hex())
    elif change == "direction":
        lines[1] = lines[1].replace("label>data", "data>label")
    else:
        del lines[1]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=r"line 2: the chain is broken"):
        list(read_transcript(path))


def test_other_files_are_not_transcripts(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello\n")
    with pytest.raises(InputError, match="line 1: not a line of a transcript"):
        list(read_transcript(tmp_path / "x"))
    with pytest.raises(InputError, match="not a readable transcript"):
        list(read_transcript(tmp_path / "missing"))
