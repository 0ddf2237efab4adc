"""A private authority: one certificate that both parties trust, one key that signs for them.

    authority.key   stays with whoever runs the authority, readable by its owner only
    authority.pem   goes to both parties

It signs a party's name for TLS in both directions, and nothing else: what it signed cannot sign
further.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from vesper.deployment.identity.credentials import read_certificate, read_key
from vesper.deployment.identity.request import (
    CertificateRequest,
    PrivateKey,
    PublicKey,
    alternative_names,
    common_name,
    make_key,
    write_new_file,
)
from vesper.errors import InputError

CERTIFICATE, KEY = "authority.pem", "authority.key"
AUTHORITY_DAYS = 3650
BACKDATE = timedelta(minutes=5)
"""Certificates are valid from a moment ago, as clocks of two institutions differ a little."""

_USES = (
    "digital_signature content_commitment key_encipherment data_encipherment key_agreement "
    "key_cert_sign crl_sign encipher_only decipher_only"
).split()


@dataclass(frozen=True)
class Authority:
    """The authority, ready to sign."""

    certificate: x509.Certificate
    key: PrivateKey


def make_authority(folder: Path, *, name: str, now: datetime) -> Authority:
    """Make a new authority in a folder.

    Raises:
        InputError: the folder already has one, or cannot be written.
    """
    if not (0 < len(name) <= 64 and name.isprintable()):
        raise InputError(f"--name: expected a name of 1 to 64 printable characters, got '{name}'")
    if (folder / CERTIFICATE).exists():
        raise InputError(
            f"{folder / CERTIFICATE}: already exists and will not be overwritten; choose another "
            f"folder"
        )
    key = make_key(folder / KEY)
    subject = common_name(name)
    builder = _builder(subject, subject, key.public_key(), key, now, timedelta(days=AUTHORITY_DAYS))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage("key_cert_sign", "crl_sign"), critical=True)
    certificate = builder.sign(key, SHA256())
    write_new_file(folder / CERTIFICATE, certificate.public_bytes(Encoding.PEM))
    return Authority(certificate, key)


def read_authority(folder: Path, *, now: datetime) -> Authority:
    """Open an authority to sign with it.

    Raises:
        InputError: it is missing or invalid, has expired, or others can read its key.
    """
    if not folder.is_dir():
        raise InputError(
            f"{folder}: expected the folder of an authority, found none; `vesper cert init` makes "
            f"one"
        )
    certificate = read_certificate(folder / CERTIFICATE)
    key = read_key(folder / KEY)
    if certificate.public_key() != key.public_key():
        raise InputError(f"{folder / KEY}: is not the key of {CERTIFICATE} next to it")
    if not certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc:
        raise InputError(
            f"{folder / CERTIFICATE}: the authority is valid from "
            f"{certificate.not_valid_before_utc:%Y-%m-%d} to "
            f"{certificate.not_valid_after_utc:%Y-%m-%d}, and today is {now:%Y-%m-%d}; make a new "
            f"one with `vesper cert init` and sign both parties' requests again"
        )
    return Authority(certificate, key)


def sign(
    authority: Authority, request: CertificateRequest, *, days: int, now: datetime
) -> x509.Certificate:
    """Sign a request, for its name and hosts.

    Raises:
        InputError: the authority would expire before the certificate.
    """
    last = authority.certificate.not_valid_after_utc
    most = (last - now).days
    if not 1 <= days <= most:
        raise InputError(
            f"--days: expected 1 to {most}, as the authority is valid until {last:%Y-%m-%d}, got "
            f"{days}"
        )
    builder = _builder(
        common_name(request.name),
        authority.certificate.subject,
        request.public_key,
        authority.key,
        now,
        timedelta(days=days),
    )
    names = alternative_names(request.name, request.hosts)
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = builder.add_extension(names, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
    builder = builder.add_extension(_usage("digital_signature"), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(both), critical=False)
    return builder.sign(authority.key, SHA256())


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public: PublicKey,
    issuer_key: PrivateKey,
    now: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    from_issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(from_issuer, critical=False)
    )


def _usage(*allowed: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{use: use in allowed for use in _USES})
