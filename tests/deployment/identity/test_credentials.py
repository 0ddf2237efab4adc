"""Every way in which certificate, key and authority do not fit is reported before a handshake."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from vesper.deployment.identity.authority import make_authority, sign
from vesper.deployment.identity.credentials import Credentials, party_of, read_credentials
from vesper.deployment.identity.request import alternative_names, common_name, make_request
from vesper.errors import InputError

NOW = datetime(2026, 11, 16, tzinfo=UTC)


@dataclass
class Files:
    certificate: Path
    key: Path
    authority: Path

    def read(self, *, name: str = "bank", now: datetime = NOW) -> Credentials:
        return read_credentials(
            certificate=self.certificate, key=self.key, authority=self.authority, name=name, now=now
        )


def make(folder: Path, name: str = "bank") -> Files:
    authority = make_authority(folder / "ca", name="a", now=NOW)
    key, _, request = make_request(name, [], folder)
    path = folder / f"{name}.pem"
    path.write_bytes(sign(authority, request, days=30, now=NOW).public_bytes(Encoding.PEM))
    return Files(path, key, folder / "ca" / "authority.pem")


def test_matching_files(tmp_path: Path) -> None:
    files = make(tmp_path)
    credentials = files.read()
    assert credentials.until == NOW + timedelta(days=30)
    assert credentials.identity.key == files.key.read_bytes()
    assert "PRIVATE" not in repr(credentials)


@pytest.mark.parametrize(
    ("days", "message"),
    [
        (-1, r"bank.pem: is valid from 2026-11-15 23:55 UTC, and the clock .* set the clock"),
        (30, r"bank.pem: expired at 2026-12-16 00:00 UTC, .* signed again"),
        (4000, "expired at"),
    ],
)
def test_out_of_date(tmp_path: Path, days: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(tmp_path).read(now=NOW + timedelta(days=days))


def test_another_name(tmp_path: Path) -> None:
    message = "expected a certificate for 'platform', found one for 'bank'"
    with pytest.raises(InputError, match=message):
        make(tmp_path).read(name="platform")


def test_parts_of_two_parties(tmp_path: Path) -> None:
    one, other = make(tmp_path / "one"), make(tmp_path / "other")
    with pytest.raises(InputError, match=r"is not the private key of .*bank.pem"):
        Files(one.certificate, other.key, one.authority).read()
    with pytest.raises(InputError, match=r"bank.pem: was not signed by .*authority.pem"):
        Files(one.certificate, one.key, other.authority).read()
    with pytest.raises(InputError, match="expected the certificate of an authority, found a party"):
        Files(one.certificate, one.key, one.certificate).read()


def test_invalid_files(tmp_path: Path) -> None:
    files = make(tmp_path)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(InputError, match="text: expected a certificate"):
        Files(tmp_path / "text", files.key, files.authority).read()
    with pytest.raises(InputError, match="none: the certificate cannot be read"):
        Files(tmp_path / "none", files.key, files.authority).read()
    files.key.chmod(0o644)
    with pytest.raises(InputError, match="others can read"):
        files.read()


@pytest.mark.parametrize(
    ("subject", "names", "party"),
    [("bank", "bank", "bank"), ("bank", "platform", ""), ("bank", None, "")],
)
def test_a_party_is_what_tls_would_see(subject: str, names: str | None, party: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(common_name(subject))
        .issuer_name(common_name("a"))
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW)
        .not_valid_after(NOW + timedelta(days=1))
    )
    if names is not None:
        builder = builder.add_extension(alternative_names(names, []), critical=False)
    assert party_of(builder.sign(key, SHA256())) == party
