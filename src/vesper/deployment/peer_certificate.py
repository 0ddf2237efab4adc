"""Certificate of the listening peer, fetched and checked before each connection to it.

gRPC does not show a connecting end the certificate of the other one. So this side first does a TLS
handshake of its own, which checks authority, name and dates, and says exactly what is wrong. The
connection that follows then trusts this one certificate and no other: nobody can show a valid
certificate here and use another one, which may be revoked, there.
"""

import socket
import ssl

from cryptography import x509

from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.handshake import explain_tls_error, tls_context
from vesper.errors import PeerError, PeerLostError


def fetch_peer_certificate(config: PartyConfig) -> x509.Certificate:
    """Do a handshake with the listening peer; return its certificate.

    Raises:
        PeerLostError: nobody answers, or the connection broke.
        PeerError: what answers is not the peer, or it refuses us.
    """
    party = config.party
    assert party.connect is not None
    context = tls_context(config, ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["h2"])
    try:
        with (
            socket.create_connection(party.connect, timeout=party.patience) as plain,
            context.wrap_socket(plain, server_hostname=party.peer) as secure,
        ):
            content = secure.getpeercert(binary_form=True) or b""
            if not secure.recv(1):  # a refusal of our certificate comes with the first bytes
                raise ConnectionResetError("closed after the handshake")
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError) as error:
        raise _lost(config, explain_tls_error(error, party.peer)) from None
    except ssl.SSLError as error:
        raise PeerError(
            f"{party.peer}: {explain_tls_error(error, party.peer)} ({error.reason})"
        ) from None
    except OSError as error:
        why = "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise _lost(config, why) from None
    return x509.load_der_x509_certificate(content)


def _lost(config: PartyConfig, why: str) -> PeerLostError:
    return PeerLostError(f"the connection to {config.party.peer} was lost ({why})")
