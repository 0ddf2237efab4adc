from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import VesperError
from vesper.transport.frame_log import RECEIVED, SENT, FrameLog


def test_frames_are_read_back_after_a_restart(tmp_path: Path) -> None:
    log = FrameLog(tmp_path / "frames")
    log.append(SENT, 0, b"hello")
    log.append(RECEIVED, 0, b"")
    log.append(SENT, 1, b"x" * 10_000)
    log.close()
    again = FrameLog(tmp_path / "frames")
    assert (again.count(SENT), again.count(RECEIVED)) == (2, 1)
    assert again.frame(SENT, 0) == b"hello"
    assert again.frame(RECEIVED, 0) == b""
    assert again.frame(SENT, 1) == b"x" * 10_000
    assert again.frame(SENT, 2) is None


@given(cut=st.integers(1, 60))
def test_a_truncated_record_is_ignored(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    folder = tmp_path_factory.mktemp("log") / "frames"
    log = FrameLog(folder)
    log.append(SENT, 0, b"first")
    log.append(SENT, 1, b"second" * 5)
    log.close()
    path = folder / "000000.frames"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - min(cut, 17 + 30 - 1)])
    again = FrameLog(folder)
    assert again.count(SENT) == 1
    again.append(SENT, 1, b"other")  # the file continues after the last complete record
    again.close()
    assert FrameLog(folder).frame(SENT, 1) == b"other"


def test_the_log_ends_at_a_changed_byte(tmp_path: Path) -> None:
    log = FrameLog(tmp_path)
    for number in range(3):
        log.append(SENT, number, bytes([number]) * 50)
    log.close()
    path = tmp_path / "000000.frames"
    content = bytearray(path.read_bytes())
    content[17 + 50 + 17 + 10] ^= 1
    path.write_bytes(content)
    assert FrameLog(tmp_path).count(SENT) == 1


def test_the_opening_and_the_last_two_segments_are_stored(tmp_path: Path) -> None:
    log = FrameLog(tmp_path)
    log.append(SENT, 0, b"opening")
    for segment in range(1, 5):
        log.start_segment()
        log.append(SENT, segment, b"segment")
    stored = [number for number in range(5) if log.frame(SENT, number) is not None]
    assert stored == [0, 3, 4]
    assert log.count(SENT) == 5
    log.close()
    again = FrameLog(tmp_path)
    assert [number for number in range(5) if again.frame(SENT, number) is not None] == stored


def test_a_segment_that_a_killed_process_did_not_drop_goes_at_the_next_start(
    tmp_path: Path,
) -> None:
    log = FrameLog(tmp_path)
    for _ in range(4):
        log.start_segment()
    log.close()
    (tmp_path / "000002.frames").write_bytes(b"")  # killed before it was dropped
    again = FrameLog(tmp_path)
    assert sorted(path.name[:6] for path in tmp_path.iterdir()) == ["000000", "000003", "000004"]
    again.start_segment()
    assert sorted(path.name[:6] for path in tmp_path.iterdir()) == ["000000", "000004", "000005"]


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(VesperError, match="frames cannot be written"):
        FrameLog(tmp_path / "file" / "frames")
