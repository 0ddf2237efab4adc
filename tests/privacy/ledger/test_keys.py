import os
from pathlib import Path

import pytest

from vesper.errors import InputError
from vesper.privacy.ledger.keys import derive_keys, key_path
from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.privacy.ledger.reader import LedgerReader
from vesper.privacy.ledger.store import Ledger, key_of


def opened(folder: Path) -> Ledger:
    return Ledger(folder / "ledger.sqlite", clock=lambda: 12.5)


def shown(folder: Path) -> LedgerReader:
    return open_to_read(folder / "ledger.sqlite")


def test_the_key_is_made_once_and_kept_apart(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    key = key_of(ledger)
    assert len(key) == 32
    assert key_of(opened(tmp_path)) == key
    path = key_path(ledger.path)
    assert path.stat().st_mode & 0o777 == 0o600
    ledger.close()
    stored = (tmp_path / "ledger.sqlite").read_bytes()
    secret = path.read_bytes()
    for hidden in (secret, derive_keys(secret).chain, derive_keys(secret).fingerprint):
        assert hidden not in stored
        assert hidden.hex().encode() not in stored


def test_chain_and_fingerprint_have_keys_of_their_own() -> None:
    keys = derive_keys(bytes(32))
    assert len({keys.chain, keys.fingerprint, bytes.fromhex(keys.check), bytes(32)}) == 4
    assert derive_keys(bytes(31) + b"1").chain != keys.chain


def test_the_name_of_the_key_is_on_disk_before_the_first_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    ledger = opened(tmp_path)
    assert synced[:2] == [f"{key_path(ledger.path)}.partial", str(tmp_path)]


def test_a_lost_or_exchanged_key_is_refused(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    path = key_path(ledger.path)
    path.write_bytes(bytes(32))
    with pytest.raises(InputError, match="not the key"):
        opened(tmp_path)
    assert shown(tmp_path).verify() == 1
    path.write_bytes(b"short")
    with pytest.raises(InputError, match="expected a key of 32 bytes, found 5"):
        opened(tmp_path)
    path.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        opened(tmp_path)
    assert len(list(shown(tmp_path).entries())) == 1
    with pytest.raises(InputError, match="cannot be read"):
        shown(tmp_path).verify()


def test_a_key_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match="key: cannot be written .No space left"):
        opened(tmp_path)
    monkeypatch.undo()
    assert opened(tmp_path).verify() is None
