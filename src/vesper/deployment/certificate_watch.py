"""Certificates of both parties during a run: new files, expiry and revocation.

| what | when it takes effect |
| --- | --- |
| new files of this party | at the next connection, without a restart |
| a certificate that expires within 30 days, or has expired | reported once, at either side |
| a list of revoked certificates that has changed | at the next connection |

The connecting side learns the peer's certificate from a handshake of its own, the listening side
from each connection that it accepts.
"""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.identity.credentials import RENEWAL_DAYS, Credentials, read_credentials
from vesper.deployment.identity.revocation import is_revoked
from vesper.deployment.peer_certificate import fetch_peer_certificate
from vesper.errors import InputError, PeerError
from vesper.transport.grpc_channel import Identity
from vesper.transport.refusal import Refusal

Clock = Callable[[], datetime]
Warn = Callable[[str], None]
"""Receives warnings for people."""


def ignore_warning(text: str) -> None:
    """Do nothing: the default for `Warn`."""


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


def credentials_of(config: PartyConfig, *, now: datetime | None = None) -> Credentials:
    """Read and check this party's certificate, key and authority.

    Raises:
        InputError: they cannot be used, or are revoked; the message says why.
    """
    tls = config.tls
    credentials = read_credentials(
        certificate=tls.certificate,
        key=tls.key,
        authority=tls.authority,
        name=config.party.name,
        now=now or utc_now(),
    )
    own = x509.load_pem_x509_certificate(credentials.identity.certificate)
    if is_revoked(own, tls.revoked):
        raise InputError(
            f"{tls.certificate}: is on the list {tls.revoked} of revoked certificates; request a "
            f"new one with `vesper cert request`"
        )
    return credentials


class CertificateWatch:
    """Identity of this party and certificate of the peer, as they are now.

    Args:
        config: settings of this party.
        warn: receives each warning once.
        clock: returns the time.
    """

    def __init__(
        self, config: PartyConfig, *, warn: Warn = ignore_warning, clock: Clock = utc_now
    ) -> None:
        self._config, self._warn, self._clock = config, warn, clock
        self._warned, self._lock = set[str](), threading.Lock()
        self._read: tuple[object, Credentials] | None = None
        self._peer: x509.Certificate | None = None

    def identity(self) -> Identity:
        """Identity of this party, from its files as they are now.

        Raises:
            InputError: they cannot be used.
        """
        return self._credentials().identity

    def identity_for_peer(self) -> Identity:
        """Identity of this party to connect with, which trusts the peer's certificate only.

        Raises:
            InputError: files of this party cannot be used.
            PeerError: the peer cannot be reached, or its certificate cannot be accepted.
        """
        own, tls = self.identity(), self._config.tls
        certificate = fetch_peer_certificate(self._config)
        if is_revoked(certificate, tls.revoked):
            raise PeerError(
                f"{self._config.party.peer}: its certificate is on the list {tls.revoked} of "
                f"revoked ones; it needs a new one"
            )
        self._peer = certificate
        self.report()
        return replace(own, authority=certificate.public_bytes(Encoding.PEM))

    def refusal_of(self, pem: bytes) -> Refusal | None:
        """Check the certificate of a peer that has connected; None accepts it.

        Raises:
            InputError: the list of revoked certificates cannot be read.
        """
        certificate = x509.load_pem_x509_certificate(pem)
        if is_revoked(certificate, self._config.tls.revoked):
            self._warn_once(
                f"{self._config.party.peer} was refused: its certificate is on the list "
                f"{self._config.tls.revoked} of revoked ones"
            )
            return Refusal.REVOKED
        self._peer = certificate
        return None

    def report(self) -> None:
        """Report whatever prevents the next connection, now or soon."""
        try:
            until = self._credentials().until
        except InputError as error:
            self._warn_once(str(error))
        else:
            self._warn_if_due(
                "the certificate of this party",
                until,
                "have it signed again (`vesper cert approve`)",
            )
        if self._peer is not None:
            peer = self._config.party.peer
            fix = f"{peer} needs a new one"
            self._warn_if_due(
                f"the certificate of {peer}, as last seen,", self._peer.not_valid_after_utc, fix
            )

    def _warn_if_due(self, what: str, until: datetime, fix: str) -> None:
        now = self._clock()
        if until <= now:
            self._warn_once(f"{what} expired at {until:%Y-%m-%d %H:%M} UTC; {fix}")
        elif (until - now).days < RENEWAL_DAYS:
            self._warn_once(
                f"{what} expires at {until:%Y-%m-%d %H:%M} UTC; {fix}. New files are used from the "
                f"next connection on, without a restart"
            )

    def _warn_once(self, text: str) -> None:
        with self._lock:
            is_new = text not in self._warned
            self._warned.add(text)
        if is_new:
            self._warn(text)

    def _credentials(self) -> Credentials:
        """Read the files again if one of them has changed, or the certificate has expired."""
        tls, now = self._config.tls, self._clock()
        stamp = [_stamp(path) for path in (tls.certificate, tls.key, tls.authority, tls.revoked)]
        if self._read is None or self._read[0] != stamp or self._read[1].until <= now:
            self._read = stamp, credentials_of(self._config, now=now)
        return self._read[1]


def _stamp(path: Path | None) -> tuple[int, int, int] | None:
    """Whatever changes with a file."""
    try:
        facts = path.stat() if path is not None else None
    except OSError:
        return None
    return None if facts is None else (facts.st_mtime_ns, facts.st_size, facts.st_ino)
