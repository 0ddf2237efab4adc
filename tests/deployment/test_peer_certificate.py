"""The handshake before a connection: which certificate it returns, and what it says otherwise."""

import socket
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from vesper.deployment.certificate_watch import CertificateWatch, credentials_of
from vesper.deployment.config.party_config import PartyConfig, load_party_config
from vesper.deployment.identity.credentials import party_of
from vesper.deployment.peer_certificate import fetch_peer_certificate
from vesper.errors import PeerError, PeerLostError
from vesper.transport.grpc_channel import Listener

if TYPE_CHECKING:
    from tests.conftest import Institutions


@pytest.fixture
def configs(institutions: "Institutions") -> tuple[PartyConfig, PartyConfig]:
    institutions.change("patience = 30.0", "patience = 5.0")
    data, label = (load_party_config(path) for path in institutions.settings)
    return data, label


def test_the_certificate_of_the_listener(configs: tuple[PartyConfig, PartyConfig]) -> None:
    data, label = configs
    identity = credentials_of(data).identity
    listener = Listener(str(data.party.listen), identity=lambda: identity, peer="bank", patience=5)
    with closing(listener):
        assert party_of(fetch_peer_certificate(label)) == "platform"
        pinned = CertificateWatch(label).identity_for_peer()
        assert pinned.authority == identity.certificate
        with pytest.raises(PeerLostError):
            listener.accept(limit=0.1)  # no stream was opened


def test_nobody_listens(configs: tuple[PartyConfig, PartyConfig]) -> None:
    with pytest.raises(PeerLostError, match=r"platform was lost \(Connection refused\)"):
        fetch_peer_certificate(configs[1])


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", PeerError, "does not use TLS"),
        (b"", PeerLostError, "closed the connection in the middle"),
    ],
)
def test_something_else_listens(
    configs: tuple[PartyConfig, PartyConfig], answer: bytes, error: type[PeerError], message: str
) -> None:
    label = configs[1]
    assert label.party.connect is not None
    with socket.create_server(label.party.connect) as server:

        def serve() -> None:
            with server.accept()[0] as caller:
                caller.recv(1 << 16)
                caller.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(error, match=message) as raised:
            fetch_peer_certificate(label)
        thread.join()
    assert type(raised.value) is error
