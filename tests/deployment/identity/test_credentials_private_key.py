"""Private keys: readable by the owner only, made once, refused when others can read them."""

import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from vesper.deployment.identity.credentials import read_key
from vesper.deployment.identity.request import make_key, write_new_file
from vesper.errors import InputError


def test_only_the_owner_can_read_a_new_key(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.key"
    made = make_key(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_key(path).public_key() == made.public_key()
    before = path.read_bytes()
    with pytest.raises(InputError, match="already exists and will not be overwritten"):
        make_key(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_a_key_that_others_can_read(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a.key"
    make_key(path)
    path.chmod(mode)
    with pytest.raises(InputError, match=rf"others can read \(mode {mode:04o}\).*`chmod 600` it"):
        read_key(path)


def test_keys_of_other_kinds(tmp_path: Path) -> None:
    keys = {
        "garbage": b"-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n",
        "empty": b"",
        "locked": ec.generate_private_key(ec.SECP256R1()).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word")
        ),
        "edwards": ed25519.Ed25519PrivateKey.generate().private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        ),
        "larger": ec.generate_private_key(ec.SECP384R1()).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        ),
    }
    for name, content in keys.items():
        write_new_file(tmp_path / name, content, mode=0o600)
        with pytest.raises(InputError, match=f"{name}: expected an? "):
            read_key(tmp_path / name)
    with pytest.raises(InputError, match=r"cannot be read \(No such file.*`vesper cert request`"):
        read_key(tmp_path / "none")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        make_key(tmp_path / "file" / "a.key")
