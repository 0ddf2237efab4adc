"""The list of revoked certificates: what it may contain, and what a damaged one means."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vesper.deployment.identity.credentials import read_certificate, read_key
from vesper.deployment.identity.request import fingerprint_of
from vesper.deployment.identity.revocation import MAX_LIST_BYTES, is_revoked, read_revoked
from vesper.errors import InputError

if TYPE_CHECKING:
    from tests.conftest import Institutions

ONE, TWO = "ab" * 32, "01" * 32


def test_a_list_has_fingerprints_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "revoked.txt"
    path.write_text(f"# old\n\n{ONE.upper()}  # laptop\n  {TWO}\n")
    assert read_revoked(path) == {ONE, TWO}
    path.write_text("")
    assert read_revoked(path) == read_revoked(None) == frozenset()


@pytest.mark.parametrize(
    "content",
    [b"abc", ONE.encode() + b"\n" + TWO[:-1].encode(), b"\xff", b"#" * (MAX_LIST_BYTES + 1)],
    ids=["short", "one digit less", "bytes", "large"],
)
def test_a_damaged_list_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "revoked.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"revoked.txt, line \d: expected the fingerprint"):
        read_revoked(path)


def test_a_missing_list_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_revoked(tmp_path / "revoked.txt")


def test_a_certificate_with_a_listed_key_is_revoked(
    institutions: "Institutions", tmp_path: Path
) -> None:
    tls, path = institutions.label / "tls", tmp_path / "revoked.txt"
    certificate = read_certificate(tls / "bank.pem")
    path.write_text(f"{ONE}\n")
    assert not is_revoked(certificate, path)
    assert not is_revoked(certificate, None)
    path.write_text(f"{ONE}\n{fingerprint_of(read_key(tls / 'bank.key').public_key())}\n")
    assert is_revoked(certificate, path)
