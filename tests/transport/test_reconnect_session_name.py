from pathlib import Path

import pytest

from vesper.errors import VesperError
from vesper.transport.reconnect import read_session_name, write_session_name
from vesper.transport.session_greeting import NO_SESSION_ID


def test_a_name_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "session"
    assert read_session_name(path) == NO_SESSION_ID
    for name in (b"a" * 16, b"b" * 16):
        write_session_name(path, name)
        assert read_session_name(path) == name
    assert [each.name for each in tmp_path.iterdir()] == ["session"]


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "session").write_bytes(b"short")
    with pytest.raises(VesperError, match="is damaged"):
        read_session_name(tmp_path / "session")


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(VesperError, match="cannot be written"):
        write_session_name(tmp_path / "missing" / "session", b"a" * 16)
