"""Credentials of a party for TLS, checked before use: certificate, key, authority.

    in date      not_before <= now < not_after, of certificate and authority
    key          the private key belongs to the certificate
    signed       by the authority, whose certificate allows it to sign
    name         the certificate is for this party's name

Mistakes that would otherwise show as an unexplained failed handshake are reported here. A key that
others can read proves nothing any more, so it is refused when it is read.
"""

import os
import stat
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import NameOID

from vesper.deployment.identity.request import MAX_FILE_BYTES, PrivateKey
from vesper.errors import InputError
from vesper.transport.grpc_channel import Identity

RENEWAL_DAYS = 30
"""Days before the end of a certificate from which on its renewal is recommended."""


@dataclass(frozen=True)
class Credentials:
    """What TLS needs, and the period in which it is valid."""

    identity: Identity = field(repr=False)  # a key never gets into a log
    since: datetime
    until: datetime


def read_credentials(
    *, certificate: Path, key: Path, authority: Path, name: str, now: datetime
) -> Credentials:
    """Read the three files and check that they fit together, and fit this party now.

    Raises:
        InputError: one of them cannot be used; the message says why and what to do.
    """
    own, issuer = read_certificate(certificate), read_certificate(authority)
    if own.public_key() != read_key(key).public_key():
        raise InputError(
            f"{key}: is not the private key of {certificate}; take the two that were made together"
        )
    _refuse_unsigned(own, issuer, certificate, authority)
    for path, read in ((certificate, own), (authority, issuer)):
        refuse_out_of_date(read, path, now)
    certified_name = party_of(own)
    if certified_name != name:
        raise InputError(
            f"{certificate}: expected a certificate for '{name}', found one for "
            f"'{certified_name}'; request the right one with `vesper cert request --name {name}`, "
            f"or fix party.name"
        )
    return Credentials(
        identity=Identity(
            certificate=_content(certificate),
            key=read_key_bytes(key),
            authority=_content(authority),
        ),
        since=max(own.not_valid_before_utc, issuer.not_valid_before_utc),
        until=min(own.not_valid_after_utc, issuer.not_valid_after_utc),
    )


def read_certificate(path: Path) -> x509.Certificate:
    """Read one certificate.

    Raises:
        InputError: the file is something else.
    """
    try:
        return x509.load_pem_x509_certificate(_content(path))
    except ValueError:
        raise InputError(
            f"{path}: expected a certificate (PEM), found something else; `vesper cert approve` "
            f"writes one"
        ) from None


def party_of(certificate: x509.Certificate) -> str:
    """Return the party that a certificate is for; '' if TLS would see another name."""
    common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names = extension.value.get_values_for_type(x509.DNSName)
    except (x509.ExtensionNotFound, ValueError):
        names = []
    party = str(common[0].value) if len(common) == 1 else ""
    return party if party in names else ""


def refuse_out_of_date(certificate: x509.Certificate, path: Path, now: datetime) -> None:
    """Refuse a certificate that has expired, or is not valid yet.

    Raises:
        InputError: it is out of date.
    """
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < first:
        raise InputError(
            f"{path}: is valid from {first:%Y-%m-%d %H:%M} UTC, and the clock of this machine says "
            f"{now:%Y-%m-%d %H:%M} UTC; set the clock, or wait"
        )
    if now >= last:
        raise InputError(
            f"{path}: expired at {last:%Y-%m-%d %H:%M} UTC, and the clock of this machine says "
            f"{now:%Y-%m-%d %H:%M} UTC; have the request signed again (`vesper cert approve`)"
        )


def _refuse_unsigned(
    own: x509.Certificate, issuer: x509.Certificate, path: Path, authority: Path
) -> None:
    try:
        constraints = issuer.extensions.get_extension_for_class(x509.BasicConstraints).value
        is_authority = constraints.ca
    except (x509.ExtensionNotFound, ValueError):
        is_authority = False
    if not is_authority:
        raise InputError(
            f"{authority}: expected the certificate of an authority, found a party's; take the "
            f"authority.pem that `vesper cert init` wrote"
        )
    try:
        own.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        raise InputError(
            f"{path}: was not signed by {authority}; both parties need the authority.pem of the "
            f"one that signed"
        ) from None


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES)
    except OSError as error:
        raise InputError(f"{path}: the certificate cannot be read ({error.strerror})") from None


def read_key_bytes(path: Path) -> bytes:
    """Read the file of a key, in the form that TLS needs.

    Raises:
        InputError: it cannot be read, or others than its owner can read it.
    """
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read(MAX_FILE_BYTES)
    except OSError as error:
        raise InputError(
            f"{path}: the private key cannot be read ({error.strerror}); `vesper cert request` "
            f"makes one"
        ) from None
    if mode & 0o077:
        raise InputError(
            f"{path}: a private key that others can read (mode {mode:04o}) proves nothing; if "
            f"nobody has read it, `chmod 600` it, otherwise make a new one with `vesper cert "
            f"request`"
        )
    return content


def read_key(path: Path) -> PrivateKey:
    """Read a key.

    Raises:
        InputError: as for `read_key_bytes`, or the key is not of the kind we make.
    """
    content = read_key_bytes(path)
    try:
        key = load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InputError(
            f"{path}: expected a private key (PEM, without a password), found something else"
        ) from None
    if not (isinstance(key, PrivateKey) and isinstance(key.curve, ec.SECP256R1)):
        raise InputError(
            f"{path}: expected an ECDSA key on P-256, found another kind; `vesper cert request` "
            f"makes one"
        )
    return key
