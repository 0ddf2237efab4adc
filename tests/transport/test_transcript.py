from pathlib import Path

import pytest

from vesper.errors import InputError
from vesper.transport.transcript import (
    Transcript,
    digest_of_frame,
    first_difference,
    read_transcript,
)


def written(path: Path, frames: list[tuple[str, bytes]]) -> Path:
    receipts = Transcript(path)
    for number, (direction, frame) in enumerate(frames):
        receipts.record(number, direction, frame)
    receipts.close()
    return path


FRAMES = [("data>label", b"a"), ("label>data", b"bb"), ("data>label", b"ccc")]


def test_two_sides_of_one_session_have_the_same_chain(tmp_path: Path) -> None:
    mine, theirs = written(tmp_path / "a", FRAMES), written(tmp_path / "b", FRAMES)
    assert first_difference(mine, theirs) is None
    assert [line.size for line in read_transcript(mine)] == [1, 2, 3]


def test_the_first_difference_is_found(tmp_path: Path) -> None:
    mine = written(tmp_path / "a", FRAMES)
    theirs = written(tmp_path / "b", [FRAMES[0], ("label>data", b"BB"), FRAMES[2]])
    found = first_difference(mine, theirs)
    assert found is not None
    assert [line.number for line in found if line] == [1, 1]
    shorter = written(tmp_path / "c", FRAMES[:2])
    found = first_difference(mine, shorter)
    assert found is not None
    assert found[0] is not None
    assert found[0].number == 2
    assert found[1] is None


def test_a_file_goes_on_after_a_restart_and_forgets_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = written(tmp_path / "a", FRAMES[:2])
    path.write_text(path.read_text() + "2\tdata>lab")
    receipts = Transcript(path)
    assert receipts.matches(1, b"bb")
    assert not receipts.matches(1, b"BB")
    assert receipts.matches(2, b"ccc")  # nothing is known of it yet
    receipts.record(1, *FRAMES[1])  # noted before: not again
    receipts.record(2, *FRAMES[2])
    receipts.close()
    assert path.read_text() == written(tmp_path / "b", FRAMES).read_text()


@pytest.mark.parametrize("change", ["digest", "direction", "line"])
def test_a_changed_file_is_found_out(tmp_path: Path, change: str) -> None:
    path = written(tmp_path / "a", FRAMES)
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


def test_something_else_is_no_file_of_receipts(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello\n")
    with pytest.raises(InputError, match="line 1: not a receipt"):
        list(read_transcript(tmp_path / "x"))
    with pytest.raises(InputError, match="not a readable file"):
        list(read_transcript(tmp_path / "missing"))
