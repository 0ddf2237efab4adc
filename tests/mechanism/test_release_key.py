import os
import stat
from pathlib import Path

import pytest

from vesper.errors import VesperError
from vesper.mechanism.noise.noise_source import KEY_BYTES
from vesper.mechanism.release_key import durable_key


def test_a_key_is_made_once(tmp_path: Path) -> None:
    first = durable_key(tmp_path / "0000.key")
    assert len(first) == KEY_BYTES
    assert durable_key(tmp_path / "0000.key") == first
    assert durable_key(tmp_path / "0001.key") != first
    assert {path.name for path in tmp_path.iterdir()} == {"0000.key", "0001.key"}


def test_only_this_user_can_read_a_key(tmp_path: Path) -> None:
    durable_key(tmp_path / "0000.key")
    assert stat.S_IMODE((tmp_path / "0000.key").stat().st_mode) == 0o600


def test_of_two_processes_both_use_the_key_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, first = tmp_path / "0000.key", bytes(range(KEY_BYTES))
    link = os.link

    def late(source: Path, target: Path) -> None:
        path.write_bytes(first)
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    assert durable_key(path) == first


@pytest.mark.parametrize("is_new", [True, False])
def test_the_key_and_its_name_are_on_disk_before_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    """Also where the process that made the key died before it could sync the folder."""
    path, synced = tmp_path / "releases" / "0000.key", []
    path.parent.mkdir()
    if not is_new:
        path.write_bytes(bytes(KEY_BYTES))

    def recorded(handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)

    monkeypatch.setattr(os, "fsync", recorded)
    durable_key(path)
    folders = [path.parent.stat().st_ino, tmp_path.stat().st_ino]
    assert synced == ([path.stat().st_ino, *folders] if is_new else folders)


@pytest.mark.parametrize("content", [b"", bytes(KEY_BYTES - 1), bytes(KEY_BYTES + 1)])
def test_a_damaged_key_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "0000.key").write_bytes(content)
    with pytest.raises(VesperError, match=f"32 bytes of a key, found {len(content)}; noise is nev"):
        durable_key(tmp_path / "0000.key")


def test_nothing_is_drawn_where_no_key_can_be_stored(tmp_path: Path) -> None:
    with pytest.raises(VesperError, match=r"cannot be stored or read .* was not drawn"):
        durable_key(tmp_path / "missing" / "0000.key")
