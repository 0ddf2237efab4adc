"""Requests: one name, its hosts, proof of the key; everything else is refused."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from vesper.deployment.identity.request import make_request, read_request
from vesper.errors import InputError


def test_a_request_can_be_read_back(tmp_path: Path) -> None:
    key, file, made = make_request("bank", ["bank.example", "10.0.0.7"], tmp_path)
    assert (key.name, file.name) == ("bank.key", "bank.csr")
    read = read_request(file)
    assert (read.name, sorted(read.hosts)) == ("bank", ["10.0.0.7", "bank.example"])
    assert read.fingerprint == made.fingerprint
    assert len(read.fingerprint) == 64
    assert b"PRIVATE" not in file.read_bytes()
    with pytest.raises(InputError, match="will not be overwritten"):
        make_request("bank", [], tmp_path)


@pytest.mark.parametrize(
    ("name", "hosts", "message"),
    [
        ("Bank", [], "--name: expected one word"),
        ("bank", ["platform"], "--host: expected an IP address or a lower-case name with a dot"),
    ],
)
def test_invalid_names(tmp_path: Path, name: str, hosts: Sequence[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_request(name, hosts, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def write_foreign(
    path: Path, subject: Sequence[str], names: Sequence[x509.GeneralName] | None
) -> None:
    """Write a request that our own command would not write."""
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, part) for part in subject]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(parts))
    if names is not None:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), SHA256())
    path.write_bytes(signed.public_bytes(Encoding.PEM))


@pytest.mark.parametrize(
    ("subject", "names"),
    [
        (["bank"], [x509.DNSName("bank"), x509.DNSName("platform")]),  # becoming somebody else
        (["bank"], [x509.DNSName("bank"), x509.DNSName("*.example")]),
        (["bank"], [x509.DNSName("bank"), x509.UniformResourceIdentifier("http://x")]),
        (["bank", "platform"], [x509.DNSName("bank")]),
        ([], [x509.DNSName("bank")]),
        (["bank.example"], [x509.DNSName("bank.example")]),
    ],
)
def test_other_names_are_not_signed(
    tmp_path: Path, subject: Sequence[str], names: Sequence[x509.GeneralName]
) -> None:
    write_foreign(tmp_path / "a.csr", subject, names)
    with pytest.raises(InputError, match="expected a request for one party name and its hosts"):
        read_request(tmp_path / "a.csr")


def test_files_that_are_not_requests(tmp_path: Path) -> None:
    key, file, _ = make_request("bank", [], tmp_path)
    with pytest.raises(InputError, match="found a private key, which should never leave"):
        read_request(key)
    forged = file.read_bytes().splitlines()
    forged[3] = forged[3][::-1]
    for name, content in {"forged": b"\n".join(forged), "text": b"hello", "empty": b""}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=f"{name}: expected a certificate request"):
            read_request(tmp_path / name)
    write_foreign(tmp_path / "bare.csr", ["bank"], None)
    with pytest.raises(InputError, match="expected a certificate request"):
        read_request(tmp_path / "bare.csr")
    with pytest.raises(InputError, match="cannot be read"):
        read_request(tmp_path / "none.csr")
