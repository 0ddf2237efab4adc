"""Whether two sides can reach and recognise each other, over loopback with real certificates."""

import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from vesper.deployment.certificate_watch import credentials_of
from vesper.deployment.config.party_config import Address, PartyConfig, load_party_config
from vesper.deployment.handshake import (
    MAX_GREETING_BYTES,
    PROTOCOL,
    PeerContact,
    PreflightGreeting,
    bound_socket,
    reach_peer,
    wait_for_peer,
)
from vesper.deployment.identity.authority import make_authority, read_authority, sign
from vesper.deployment.identity.credentials import party_of
from vesper.deployment.identity.request import make_request
from vesper.errors import InputError, PeerError, VesperError
from vesper.transport.grpc_channel import Listener

if TYPE_CHECKING:
    from tests.conftest import Institutions

HERE, THERE = PreflightGreeting("1", "mine", 0.0), PreflightGreeting("2", "theirs", 0.0)


def configs(institutions: "Institutions") -> list[PartyConfig]:
    return [load_party_config(path) for path in institutions.settings]


def both(institutions: "Institutions", *, seconds: float = 10.0) -> list[PeerContact | VesperError]:
    """Let the platform wait and the bank connect; return what each returned or raised."""
    data, label = configs(institutions)

    def outcome(function: Callable[[], PeerContact]) -> PeerContact | VesperError:
        try:
            return function()
        except VesperError as error:
            return error

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(outcome, lambda: wait_for_peer(data, HERE, seconds=seconds))
        connected = outcome(lambda: reach_peer(label, THERE, seconds=seconds))
        return [waiting.result(), connected]


def new_certificate(
    institutions: "Institutions", name: str, *, authority: Path | None = None, days_ago: int = 0
) -> None:
    """Give the bank another certificate, for this name, by this authority, so many days old."""
    tls = institutions.label / "tls"
    for path in tls.glob("bank.*"):
        path.unlink()
    key, _, request = make_request(name, [], tls / "new")
    now = datetime.now(UTC)  # not when the tests began: that may be long ago
    signer = read_authority(authority or institutions.root / "authority", now=now)
    signed = sign(signer, request, days=1, now=now - timedelta(days=days_ago))
    key.rename(tls / "bank.key")
    (tls / "bank.pem").write_bytes(signed.public_bytes(Encoding.PEM))


def test_both_learn_who_the_other_is_and_get_its_greeting(institutions: "Institutions") -> None:
    waited, connected = both(institutions)
    assert isinstance(waited, PeerContact)
    assert isinstance(connected, PeerContact)
    assert (party_of(waited.certificate), party_of(connected.certificate)) == ("bank", "platform")
    assert waited.greeting is not None
    assert connected.greeting is not None
    assert (waited.greeting.contract, connected.greeting.contract) == ("theirs", "mine")
    assert abs(connected.greeting.time - connected.greeting.received) < 60


def test_a_stranger_with_a_certificate_of_the_same_authority(institutions: "Institutions") -> None:
    new_certificate(institutions, "stranger")
    waited, _ = both(institutions, seconds=2)
    assert isinstance(waited, PeerError)
    assert "expected the certificate of 'bank', got 'stranger'" in str(waited)


def test_the_listener_is_another_party(institutions: "Institutions") -> None:
    path = institutions.settings[1]
    path.write_text(path.read_text().replace('peer = "platform"', 'peer = "shop"'))
    _, connected = both(institutions, seconds=2)
    assert isinstance(connected, PeerError)
    assert "the certificate there is not for 'shop'; fix party.peer" in str(connected)


def test_certificates_of_two_authorities(institutions: "Institutions") -> None:
    make_authority(institutions.root / "other", name="other", now=datetime.now(UTC))
    new_certificate(institutions, "bank", authority=institutions.root / "other")
    waited, connected = both(institutions, seconds=2)
    assert "was not signed by tls.authority" in str(waited)
    assert "platform refuses our certificate" in str(connected)
    pem = (institutions.root / "other" / "authority.pem").read_bytes()
    (institutions.label / "tls" / "authority.pem").write_bytes(pem)
    _, connected = both(institutions, seconds=2)
    assert "the certificate there was not signed by tls.authority" in str(connected)


def test_an_expired_certificate(institutions: "Institutions") -> None:
    new_certificate(institutions, "bank", days_ago=2)
    waited, connected = both(institutions, seconds=2)
    assert "the certificate of bank has expired" in str(waited)
    assert "platform refuses our certificate" in str(connected)


def test_an_absent_peer(institutions: "Institutions") -> None:
    data, label = configs(institutions)
    with pytest.raises(PeerError, match=r"platform cannot be reached \(Connection refused\); star"):
        reach_peer(label, HERE)
    with pytest.raises(PeerError, match=r"bank did not connect within 0\.1 s; nobody did"):
        wait_for_peer(data, HERE, seconds=0.1)


def test_a_host_that_does_not_exist(institutions: "Institutions") -> None:
    institutions.change('"127.0.0.1:', '"no-such-host.invalid:')
    data, label = configs(institutions)
    with pytest.raises(InputError, match=r"the host 'no-such-host.invalid' cannot be resolved"):
        reach_peer(label, HERE)
    with pytest.raises(InputError, match=r"party.listen: cannot listen at no-such-host"):
        bound_socket(data.party.listen)


def test_a_port_that_is_taken() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(InputError, match=r"cannot listen at 127\.0\.0\.1:.*choose a free port"),
    ):
        bound_socket(Address("127.0.0.1", taken.getsockname()[1]))


def serve_once(config: PartyConfig, answer: Callable[[socket.socket], Any]) -> threading.Thread:
    """Accept one connection at the address that the bank connects to."""
    assert config.party.connect is not None
    listener = socket.create_server(config.party.connect)

    def serve() -> None:
        with listener, listener.accept()[0] as plain:
            answer(plain)

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def test_something_without_tls_listens_there(institutions: "Institutions") -> None:
    label = configs(institutions)[1]
    thread = serve_once(label, lambda plain: plain.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    with pytest.raises(PeerError, match="does not use TLS; fix host or port"):
        reach_peer(label, HERE)
    thread.join()


@pytest.mark.parametrize(
    ("greeting", "message"),
    [
        (b"", "closed the connection in the middle"),
        ((MAX_GREETING_BYTES + 1).to_bytes(4, "little"), f"the limit is {MAX_GREETING_BYTES}"),
        (b"\x04\0\0\0[[[[", "not one of this version"),
        (b"\x02\0\0\0{}", "not one of this version"),
        (b"\x09\0\0\0{}", "closed the connection in the middle"),
    ],
)
def test_a_hostile_greeting(institutions: "Institutions", greeting: bytes, message: str) -> None:
    data, label = configs(institutions)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(data.tls.certificate, data.tls.key)
    context.set_alpn_protocols([PROTOCOL])

    def answer(plain: socket.socket) -> None:
        with context.wrap_socket(plain, server_side=True) as secure:
            secure.sendall(greeting)

    thread = serve_once(label, answer)
    with pytest.raises(PeerError, match=message):
        reach_peer(label, HERE)
    thread.join()


def test_a_listening_run_is_recognised_and_not_disturbed(institutions: "Institutions") -> None:
    data, label = configs(institutions)
    identity = credentials_of(data).identity
    listener = Listener(str(data.party.listen), identity=lambda: identity, peer="bank", patience=5)
    try:
        contact = reach_peer(label, HERE, seconds=5)
        assert (party_of(contact.certificate), contact.greeting) == ("platform", None)
        with pytest.raises(PeerError):
            listener.accept(limit=0.2)  # no stream was opened
    finally:
        listener.close()
