import os
from pathlib import Path

import pytest

from vesper.errors import InputError
from vesper.privacy.ledger.keys import derive_keys, key_path
from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.privacy.ledger.reader import LedgerReader
from vesper.privacy.ledger.store import Ledger, key_of


def open_ledger(folder: Path) -> Ledger:
    return Ledger(folder / "ledger.sqlite", clock=lambda: 12.5)


def open_read_only(folder: Path) -> LedgerReader:
    return open_to_read(folder / "ledger.sqlite")


def test_the_key_is_created_once_and_stored_separately(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    key = key_of(ledger)
    assert len(key) == 32
    assert key_of(open_ledger(tmp_path)) == key
    path = key_path(ledger.path)
    assert path.stat().st_mode & 0o777 == 0o600
    ledger.close()
    stored = (tmp_path / "ledger.sqlite").read_bytes()
    secret = path.read_bytes()
    for secret_value in (secret, derive_keys(secret).chain, derive_keys(secret).fingerprint):
        assert secret_value not in stored
        assert secret_value.hex().encode() not in stored


def test_chain_and_fingerprint_have_separate_keys() -> None:
    keys = derive_keys(bytes(32))
    assert len({keys.chain, keys.fingerprint, bytes.fromhex(keys.check), bytes(32)}) == 4
    assert derive_keys(bytes(31) + b"1").chain != keys.chain


def test_the_name_of_the_key_is_on_disk_before_the_first_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    ledger = open_ledger(tmp_path)
    assert synced[0].startswith(f"{key_path(ledger.path)}.")
    assert synced[0].endswith(".partial")
    assert synced[1] == str(tmp_path)


def test_a_lost_or_replaced_key_is_refused(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    path = key_path(ledger.path)
    path.write_bytes(bytes(32))
    with pytest.raises(InputError, match="not the key"):
        open_ledger(tmp_path)
    assert open_read_only(tmp_path).verify() == 1
    path.write_bytes(b"short")
    with pytest.raises(InputError, match="expected a key of 32 bytes, found 5"):
        open_ledger(tmp_path)
    path.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        open_ledger(tmp_path)
    assert len(list(open_read_only(tmp_path).entries())) == 1
    with pytest.raises(InputError, match="cannot be read"):
        open_read_only(tmp_path).verify()


def test_a_key_that_cannot_be_written_is_named_in_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match=r"key: cannot be written \(No space left"):
        open_ledger(tmp_path)
    monkeypatch.undo()
    assert open_ledger(tmp_path).verify() is None
