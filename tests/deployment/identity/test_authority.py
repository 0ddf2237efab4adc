"""The authority signs names of requests, for a while, and nothing else."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from vesper.deployment.identity.authority import make_authority, read_authority, sign
from vesper.deployment.identity.request import make_request, read_request
from vesper.errors import InputError

NOW = datetime(2026, 11, 16, tzinfo=UTC)


def test_signed_for_both_directions_of_tls(tmp_path: Path) -> None:
    made = make_authority(tmp_path / "ca", name="our authority", now=NOW)
    request = read_request(make_request("bank", ["bank.example", "::1"], tmp_path)[1])
    signed = sign(read_authority(tmp_path / "ca", now=NOW), request, days=365, now=NOW)
    signed.verify_directly_issued_by(made.certificate)
    assert signed.public_key() == request.public_key
    assert signed.not_valid_after_utc == NOW + timedelta(days=365)
    assert signed.not_valid_before_utc < NOW
    of = signed.extensions.get_extension_for_class
    names = of(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["bank", "bank.example"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["::1"]
    uses = set(of(x509.ExtendedKeyUsage).value)
    assert uses == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    assert not of(x509.BasicConstraints).value.ca
    assert not of(x509.KeyUsage).value.key_cert_sign
    constraints = made.certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.value.ca, constraints.value.path_length) == (True, 0)


def test_only_the_owner_can_read_its_key(tmp_path: Path) -> None:
    make_authority(tmp_path, name="a", now=NOW)
    key = tmp_path / "authority.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    key.chmod(0o644)
    with pytest.raises(InputError, match=r"authority\.key: a private key that others can read"):
        read_authority(tmp_path, now=NOW)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    make_authority(tmp_path, name="a", now=NOW)
    before = (tmp_path / "authority.key").read_bytes()
    with pytest.raises(InputError, match="will not be overwritten"):
        make_authority(tmp_path, name="a", now=NOW)
    assert (tmp_path / "authority.key").read_bytes() == before


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 65])
def test_invalid_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="--name: expected a name of 1 to 64 printable"):
        make_authority(tmp_path / "ca", name=name, now=NOW)
    assert not (tmp_path / "ca").exists()


@pytest.mark.parametrize("days", [-1, 3651])
def test_an_authority_out_of_date(tmp_path: Path, days: int) -> None:
    make_authority(tmp_path, name="a", now=NOW)
    with pytest.raises(InputError, match=r"valid from 2026-11-1\d to 2036-11-13, and today is"):
        read_authority(tmp_path, now=NOW + timedelta(days=days))


@pytest.mark.parametrize("days", [0, -3, 3651])
def test_no_certificate_outlives_its_authority(tmp_path: Path, days: int) -> None:
    authority = make_authority(tmp_path, name="a", now=NOW)
    request = make_request("bank", [], tmp_path)[2]
    with pytest.raises(InputError, match=f"--days: expected 1 to 3650, .* got {days}"):
        sign(authority, request, days=days, now=NOW)


def test_a_folder_without_a_valid_authority(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found none; `vesper cert init` makes one"):
        read_authority(tmp_path / "none", now=NOW)
    for name in ("one", "two"):
        make_authority(tmp_path / name, name=name, now=NOW)
    (tmp_path / "two" / "authority.key").replace(tmp_path / "one" / "authority.key")
    with pytest.raises(InputError, match=r"is not the key of authority.pem next to it"):
        read_authority(tmp_path / "one", now=NOW)
    (tmp_path / "one" / "authority.pem").write_text("hello")
    with pytest.raises(InputError, match="expected a certificate"):
        read_authority(tmp_path / "one", now=NOW)
