"""Handshake of a preflight: whether the two sides can reach and recognise each other.

The connecting side does a TLS handshake with whatever listens there. It opens no stream, so a run
in progress is not disturbed. If the other side waits with `vesper preflight --wait`, both also
exchange version, time and contract.
"""

import json
import socket
import ssl
import struct
import time
from dataclasses import dataclass

from cryptography import x509

from vesper.deployment.config.party_config import Address, PartyConfig
from vesper.deployment.identity.credentials import party_of
from vesper.errors import InputError, PeerError, PeerLostError, RemoteProtocolError

PROTOCOL = "vesper-preflight"
MAX_GREETING_BYTES = 1 << 17
RETRY_SECONDS = 0.5
"""Seconds between two attempts."""
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class PreflightGreeting:
    """What the two sides of a preflight send each other."""

    version: str
    contract: str
    time: float
    received: float = 0.0
    """Time of arrival, by this side's clock."""


@dataclass(frozen=True)
class PeerContact:
    """Certificate of the peer, and its greeting if both sides run a preflight."""

    certificate: x509.Certificate
    greeting: PreflightGreeting | None


def reach_peer(config: PartyConfig, own: PreflightGreeting, *, seconds: float = 0.0) -> PeerContact:
    """Connect to the listening peer and do the handshake; retry for so many seconds.

    Raises:
        InputError: the host cannot be resolved.
        PeerError: nobody listens, or it is not the peer, or it refuses us.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            return _reach_once(config, own)
        except PeerLostError:
            if time.monotonic() + RETRY_SECONDS > until:
                raise
            time.sleep(RETRY_SECONDS)


def wait_for_peer(config: PartyConfig, own: PreflightGreeting, *, seconds: float) -> PeerContact:
    """Listen until the peer's preflight connects.

    Raises:
        InputError: this side cannot listen at the address.
        PeerError: the peer did not connect; the message says who else did.
    """
    party = config.party
    context = tls_context(config, ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols([PROTOCOL])
    refused, until = "", time.monotonic() + seconds
    with bound_socket(party.listen) as listener:
        listener.listen()
        while (left := until - time.monotonic()) > 0:
            listener.settimeout(left)
            try:
                plain, _ = listener.accept()
                plain.settimeout(min(left, party.patience))
                with plain, context.wrap_socket(plain, server_side=True) as secure:
                    return _exchange_greetings(secure, own, party.peer)
            except TimeoutError:
                continue
            except ssl.SSLError as error:
                refused = f"somebody connected, but {explain_tls_error(error, party.peer)}"
            except (OSError, PeerError) as error:
                refused = f"somebody connected: {error}"
    raise PeerError(
        f"{party.listen}: {party.peer} did not connect within {seconds:g} s; "
        f"{refused or 'nobody did'}; run `vesper preflight` there at the same time, and check "
        f"host, port and firewalls"
    )


def bound_socket(address: Address | None) -> socket.socket:
    """Return a socket bound to an address of this machine.

    Raises:
        InputError: the address is taken, or not of this machine.
    """
    assert address is not None
    try:
        family, kind, *_, place = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise InputError(
            f"party.listen: cannot listen at {address} ({error.strerror}); choose a free port, and "
            f"an address of this machine or 0.0.0.0"
        ) from None
    return listener


def refuse_unknown_host(address: Address | None) -> None:
    """Refuse an address to connect to whose host has no IP address.

    Raises:
        InputError: the host cannot be resolved.
    """
    assert address is not None
    try:
        socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError):
        raise InputError(
            f"party.connect: the host '{address.host}' cannot be resolved; set party.connect to "
            f"the host name or IP address and the port at which the other party listens"
        ) from None


def _reach_once(config: PartyConfig, own: PreflightGreeting) -> PeerContact:
    party, address = config.party, config.party.connect
    assert address is not None
    refuse_unknown_host(address)
    context = tls_context(config, ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols([PROTOCOL, "h2"])
    try:
        with (
            socket.create_connection(address, timeout=party.patience) as plain,
            context.wrap_socket(plain, server_hostname=party.peer) as secure,
        ):
            return _exchange_greetings(secure, own, party.peer)
    except ssl.SSLError as error:
        raise PeerError(f"{address}: {explain_tls_error(error, party.peer)}") from None
    except OSError as error:
        why = "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise PeerLostError(
            f"{address}: {party.peer} cannot be reached ({why}); start `vesper preflight --wait "
            f"60` there, and check host, port and firewalls"
        ) from None


def tls_context(config: PartyConfig, protocol: int) -> ssl.SSLContext:
    """Make a TLS context in which both sides check the other's certificate."""
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cafile=config.tls.authority)
    context.load_cert_chain(config.tls.certificate, config.tls.key)
    return context


def _exchange_greetings(secure: ssl.SSLSocket, own: PreflightGreeting, peer: str) -> PeerContact:
    certificate = x509.load_der_x509_certificate(secure.getpeercert(binary_form=True) or b"")
    if party_of(certificate) != peer:  # before anything is sent
        raise PeerError(f"expected the certificate of '{peer}', got '{party_of(certificate)}'")
    if secure.selected_alpn_protocol() != PROTOCOL:
        secure.recv(1)  # a refusal of our certificate comes with the first bytes
        return PeerContact(certificate, None)
    if secure.server_side:
        _send_greeting(secure, own)
        return PeerContact(certificate, _receive_greeting(secure))
    greeting = _receive_greeting(secure)  # first, as a refusal would come instead of it
    _send_greeting(secure, own)
    return PeerContact(certificate, greeting)


def _send_greeting(secure: ssl.SSLSocket, own: PreflightGreeting) -> None:
    facts = {"version": own.version, "contract": own.contract, "time": time.time()}
    content = json.dumps(facts).encode()
    secure.sendall(_LENGTH.pack(len(content)) + content)


def _receive_greeting(secure: ssl.SSLSocket) -> PreflightGreeting:
    """Read the peer's greeting; its certificate proves who it is, not that it is benign."""
    (length,) = _LENGTH.unpack(_exactly(secure, _LENGTH.size))
    if length > MAX_GREETING_BYTES:
        raise RemoteProtocolError(
            f"the peer's greeting has {length} bytes, the limit is {MAX_GREETING_BYTES}"
        )
    content = _exactly(secure, length)
    received = time.time()
    try:
        match json.loads(content):
            case {"version": str(version), "contract": str(contract), "time": float(when)}:
                return PreflightGreeting(version[:40], contract, when, received)
    except (ValueError, RecursionError):
        pass
    raise RemoteProtocolError("the peer's greeting is not one of this version")


def _exactly(secure: ssl.SSLSocket, count: int) -> bytes:
    content = b""
    while len(content) < count:
        part = secure.recv(count - len(content))
        if not part:
            raise RemoteProtocolError(
                "the peer closed the connection in the middle of its greeting"
            )
        content += part
    return content


def explain_tls_error(error: ssl.SSLError, peer: str) -> str:
    """Explain what a failed handshake means."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _VERIFY_ERRORS.get(error.verify_code, error.verify_message).format(peer=peer)
    if isinstance(error, ssl.SSLEOFError):
        return "the other side closed the connection in the middle of the handshake"
    reason = error.reason or str(error)
    if "ALERT" in reason:
        return (
            f"{peer} refuses our certificate ({reason.lower().replace('_', ' ')}); are both "
            f"signed by the same authority, and are the names right?"
        )
    if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
        return "what listens there does not use TLS; fix host or port"
    return f"the handshake failed ({reason.lower().replace('_', ' ')})"


_VERIFY_ERRORS = {
    9: "the certificate of {peer} is not valid yet by this machine's clock; compare the clocks",
    10: "the certificate of {peer} has expired by this machine's clock; it needs a new one",
    18: "the certificate there was not signed by tls.authority; both sides need the same one",
    19: "the certificate there was not signed by tls.authority; both sides need the same one",
    20: "the certificate there was not signed by tls.authority; both sides need the same one",
    62: "the certificate there is not for '{peer}'; fix party.peer or the address",
}
"""Explanations by OpenSSL's code of a verification error."""
