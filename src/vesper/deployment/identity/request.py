"""Private keys and certificate requests of a party.

A request has the party's name, its hosts and its public key. The file may travel by mail: whoever
signs it compares the fingerprint, which the commands on both sides print, over another channel.

The private key stays on its machine: ECDSA on P-256, readable by this user only, never overwritten.
"""

import hashlib
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID

from vesper.errors import InputError
from vesper.session.party_names import host_name, is_ip, party_name

PrivateKey = ec.EllipticCurvePrivateKey

MAX_FILE_BYTES = 1 << 16
"""Limit when reading files; no key, request or certificate of ours comes near it."""


def make_key(path: Path) -> PrivateKey:
    """Make a key and write it to a new file that only this user can read.

    Raises:
        InputError: the file already exists, or cannot be written.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_new_file(path, pem, mode=0o600)
    return key


def write_new_file(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file that does not exist yet; it is on disk when this returns.

    Raises:
        InputError: the path already exists, or the folder cannot be written.
    """
    if os.path.lexists(path):
        raise InputError(f"{path}: already exists and will not be overwritten; choose another path")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror}); choose another path"
        ) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written ({error.strerror}); free some space") from None


PublicKey = ec.EllipticCurvePublicKey


@dataclass(frozen=True)
class CertificateRequest:
    """Contents of a checked request."""

    name: str
    hosts: tuple[str, ...]
    public_key: PublicKey

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the public key, to compare by telephone."""
        return fingerprint_of(self.public_key)


def make_request(
    name: str, hosts: Sequence[str], folder: Path
) -> tuple[Path, Path, CertificateRequest]:
    """Make `NAME.key`, which stays here, and `NAME.csr`, which goes to the authority.

    Raises:
        InputError: a name cannot be used, or a file already exists.
    """
    try:
        party_name(name)
    except ValueError as error:
        raise InputError(f"--name: {error}, got '{name}'") from None
    for host in hosts:
        try:
            host_name(host)
        except ValueError as error:
            raise InputError(f"--host: {error}, got '{host}'") from None
    key_path, request_path = folder / f"{name}.key", folder / f"{name}.csr"
    if request_path.exists():
        raise InputError(
            f"{request_path}: already exists and will not be overwritten; choose another path"
        )
    key = make_key(key_path)
    builder = x509.CertificateSigningRequestBuilder().subject_name(common_name(name))
    builder = builder.add_extension(alternative_names(name, hosts), critical=False)
    signed = builder.sign(key, SHA256())
    write_new_file(request_path, signed.public_bytes(Encoding.PEM))
    return key_path, request_path, CertificateRequest(name, tuple(hosts), key.public_key())


def read_request(path: Path) -> CertificateRequest:
    """Read a request and check that its maker has the private key.

    Raises:
        InputError: the file is not a request, or asks for names that are not signed.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if b"PRIVATE KEY" in content:
        raise InputError(
            f"{path}: expected a request, found a private key, which should never leave its "
            f"machine; make a new one with `vesper cert request` and send the .csr file"
        )
    try:
        signed = x509.load_pem_x509_csr(content)
        public_key = signed.public_key()
        if not signed.is_signature_valid:
            raise InvalidSignature
        names = [str(part.value) for part in signed.subject]
        requested = _requested_names(signed)
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature, x509.ExtensionNotFound):
        raise InputError(
            f"{path}: expected a certificate request (the .csr file that `vesper cert request` "
            f"wrote), found something else"
        ) from None
    if not (isinstance(public_key, PublicKey) and isinstance(public_key.curve, ec.SECP256R1)):
        raise InputError(f"{path}: expected a request for an ECDSA key on P-256, found another")
    try:
        (name,) = [party_name(text) for text in names]
        hosts = tuple(host_name(text) for text in requested if text != name)
    except ValueError:
        raise InputError(
            f"{path}: expected a request for one party name and its hosts, found other names "
            f"({', '.join(map(repr, [*names, *requested]))})"
        ) from None
    return CertificateRequest(name, hosts, public_key)


def fingerprint_of(public_key: PublicKey) -> str:
    """Return the SHA-256 digest of the public key, in hex."""
    der = public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def common_name(name: str) -> x509.Name:
    """Make a subject that is nothing but a name."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def alternative_names(name: str, hosts: Sequence[str]) -> x509.SubjectAlternativeName:
    """Make the extension with the names that TLS checks."""
    addresses = [x509.IPAddress(ipaddress.ip_address(host)) for host in hosts if is_ip(host)]
    names = [x509.DNSName(text) for text in (name, *hosts) if not is_ip(text)]
    return x509.SubjectAlternativeName([*names, *addresses])


def _requested_names(signed: x509.CertificateSigningRequest) -> list[str]:
    extension = signed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(general.value) for general in extension]
