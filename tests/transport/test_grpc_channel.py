"""Real sockets on loopback with real certificates: who is accepted, and how losses are detected."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from vesper.errors import InputError, PeerError, PeerLostError, PeerStoppedError
from vesper.transport.close_reason import CloseReason
from vesper.transport.grpc_channel import Identity, Listener, connect
from vesper.transport.refusal import Refusal, meaning_of
from vesper.transport.stream import StreamChannel

NOW = datetime.now(UTC)


class Authority:
    """Signs certificates for tests, good and bad ones."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._signed("authority", self.key.public_key(), days=9, is_ca=True)

    def identity(self, name: str, *, days: float = 9) -> Identity:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(name, key.public_key(), days=days, is_ca=False)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        authority = self.certificate.public_bytes(Encoding.PEM)
        return Identity(certificate.public_bytes(Encoding.PEM), pem, authority)

    def _signed(
        self, name: str, key: ec.EllipticCurvePublicKey, *, days: float, is_ca: bool
    ) -> x509.Certificate:
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
        builder = x509.CertificateBuilder(
            issuer_name=issuer,
            subject_name=subject,
            public_key=key,
            serial_number=x509.random_serial_number(),
            not_valid_before=NOW - timedelta(days=20),
            not_valid_after=NOW + timedelta(days=days),
        )
        builder = builder.add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), True)
        names = x509.SubjectAlternativeName([x509.DNSName(name)])
        return builder.add_extension(names, False).sign(self.key, hashes.SHA256())


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def listener(authority: Authority) -> Iterator[Listener]:
    identity = authority.identity("platform")
    listener = Listener("127.0.0.1:0", identity=lambda: identity, peer="bank", patience=2.0)
    with closing(listener):
        yield listener


def dial(
    listener: Listener, identity: Identity, *, peer: str = "platform", limit: float = 5.0
) -> StreamChannel:
    address = f"127.0.0.1:{listener.port}"
    return connect(address, identity=lambda: identity, peer=peer, patience=2.0, limit=limit)


def test_frames_both_ways(listener: Listener, authority: Authority) -> None:
    with ThreadPoolExecutor(1) as pool:
        accepting = pool.submit(listener.accept, 5.0)
        with closing(dial(listener, authority.identity("bank"))) as bank:
            platform = accepting.result()
            for size in (0, 1, 1 << 18, 3_000_000):
                bank.send(b"q" * size)
                assert platform.receive() == b"q" * size
                platform.send(b"a" * size)
                assert bank.receive() == b"a" * size


def test_the_last_frame_arrives_even_if_its_sender_closes_at_once(
    listener: Listener, authority: Authority
) -> None:
    with ThreadPoolExecutor(1) as pool:
        accepting = pool.submit(listener.accept, 5.0)
        bank = dial(listener, authority.identity("bank"))
        platform = accepting.result()

        def send_and_close() -> None:
            bank.send(b"x" * 2_000_000)
            bank.close()

        closing_bank = pool.submit(send_and_close)
        assert len(platform.receive()) == 2_000_000
        with pytest.raises(PeerLostError) as ended:
            platform.receive()
        assert ended.value.is_clean_close
        platform.close()
        closing_bank.result()


@pytest.mark.parametrize("leaver", ["bank", "platform"])
def test_the_other_end_receives_the_close_reason(
    listener: Listener, authority: Authority, leaver: str
) -> None:
    with ThreadPoolExecutor(1) as pool:
        accepting = pool.submit(listener.accept, 5.0)
        bank = dial(listener, authority.identity("bank"))
        ends = {"bank": bank, "platform": accepting.result()}
        left = ends.pop(leaver)
        closing_it = pool.submit(left.close, CloseReason.BUDGET)
        with pytest.raises(PeerStoppedError, match=f"{leaver} has ended the session: its privacy"):
            next(iter(ends.values())).receive()
        closing_it.result()


def test_another_name_is_refused_by_the_listener(listener: Listener, authority: Authority) -> None:
    with pytest.raises(PeerError, match="refused us: it expects a party of another name") as error:
        dial(listener, authority.identity("mallory"))
    assert "bank" not in str(error.value)  # the name that is expected stays with the listener
    with pytest.raises(PeerLostError, match="'mallory' tried to connect and was refused"):
        listener.accept(0.1)


def test_a_listener_of_another_name_is_refused(listener: Listener, authority: Authority) -> None:
    with pytest.raises(PeerError, match="a name other than"):
        dial(listener, authority.identity("bank"), peer="other-platform")


def test_a_certificate_of_another_authority_is_refused(
    listener: Listener, authority: Authority
) -> None:
    stranger = Authority()
    theirs = stranger.identity("bank")
    with pytest.raises(PeerError, match="not from the authority"):
        dial(listener, theirs)
    ours = authority.certificate.public_bytes(Encoding.PEM)
    with pytest.raises(PeerError):
        dial(listener, Identity(theirs.certificate, theirs.key, ours), limit=1.0)


def test_an_expired_certificate_is_refused(listener: Listener, authority: Authority) -> None:
    with pytest.raises(PeerError):
        dial(listener, authority.identity("bank", days=-1), limit=1.0)


def test_the_error_when_nobody_listens(authority: Authority) -> None:
    waited: list[float] = []
    identity = authority.identity("bank")
    with pytest.raises(PeerLostError, match=r"platform at 127\.0\.0\.1:9"):
        connect(
            "127.0.0.1:9",
            identity=lambda: identity,
            peer="platform",
            patience=2.0,
            waiting=waited.append,
            limit=0.7,
        )
    assert waited


def test_the_error_when_the_port_is_in_use(listener: Listener, authority: Authority) -> None:
    address, identity = f"127.0.0.1:{listener.port}", authority.identity("platform")
    with pytest.raises(InputError, match="is the port in use"):
        Listener(address, identity=lambda: identity, peer="bank", patience=2.0)


def test_a_new_connection_replaces_an_old_one(listener: Listener, authority: Authority) -> None:
    identity = authority.identity("bank")
    with ThreadPoolExecutor(1) as pool:
        accepting = pool.submit(listener.accept, 5.0)
        first = dial(listener, identity)
        old = accepting.result()
        accepting = pool.submit(listener.accept, 5.0)
        second = dial(listener, identity)
        new = accepting.result()
        with pytest.raises(PeerLostError, match="has reconnected"):
            old.receive()
        second.send(b"hello")
        assert new.receive() == b"hello"
        first.close()
        second.close()


def test_a_killed_peer_is_detected_at_once(listener: Listener, authority: Authority) -> None:
    with ThreadPoolExecutor(1) as pool:
        accepting = pool.submit(listener.accept, 5.0)
        bank = dial(listener, authority.identity("bank"))
        platform = accepting.result()
        threading.Timer(0.2, bank._cancel).start()  # the connection is lost without a close reason
        with pytest.raises(PeerLostError) as error:
            platform.receive()
        assert not error.value.is_clean_close


def test_an_abandoned_connection_does_not_keep_the_process_alive(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, outgoing_chunks = threading.Event(), StreamChannel.outgoing_chunks

    def observed_chunks(channel: StreamChannel) -> Iterator[bytes]:
        yield from outgoing_chunks(channel)
        if channel._peer == "bank":  # it is the platform's end
            ended.set()

    monkeypatch.setattr(StreamChannel, "outgoing_chunks", observed_chunks)
    identity = authority.identity("platform")
    listener = Listener("127.0.0.1:0", identity=lambda: identity, peer="bank", patience=3600.0)
    with closing(dial(listener, authority.identity("bank"))):
        listener.accept(5.0)  # and is never used
        listener.close()
        assert ended.wait(30)  # the serving thread, long before the next heartbeat


def test_a_key_is_never_shown(authority: Authority) -> None:
    assert "PRIVATE" not in repr(authority.identity("bank"))


def test_a_new_identity_is_used_from_the_next_connection_on(authority: Authority) -> None:
    def pinned(certificate: bytes) -> Identity:
        """The bank, which trusts this certificate only."""
        return Identity(bank.certificate, bank.key, certificate)

    bank = authority.identity("bank")
    identities = [authority.identity("platform") for _ in range(2)]
    current = identities[0]
    listener = Listener("127.0.0.1:0", identity=lambda: current, peer="bank", patience=2.0)
    with closing(listener), ThreadPoolExecutor(1) as pool:
        for number in range(2):
            current = identities[number]
            with pytest.raises(PeerError, match="CERTIFICATE_VERIFY_FAILED"):
                dial(listener, pinned(identities[1 - number].certificate))
            accepting = pool.submit(listener.accept, 5.0)
            dial(listener, pinned(current.certificate)).close()
            accepting.result().close()


def test_an_identity_that_cannot_be_read_leaves_the_old_one(authority: Authority) -> None:
    identity, is_away = authority.identity("platform"), False

    def source() -> Identity:
        if is_away:
            raise InputError("the certificate cannot be read")
        return identity

    listener = Listener("127.0.0.1:0", identity=source, peer="bank", patience=2.0)
    with closing(listener), ThreadPoolExecutor(1) as pool:
        is_away = True
        accepting = pool.submit(listener.accept, 5.0)
        dial(listener, authority.identity("bank")).close()
        accepting.result().close()


def test_only_words_of_the_list_reach_a_peer_that_is_refused(authority: Authority) -> None:
    certificates: list[bytes] = []

    def admit(certificate: bytes) -> Refusal | None:
        certificates.append(certificate)
        if len(certificates) == 1:
            raise InputError("a secret path")
        return Refusal.REVOKED

    platform, bank = authority.identity("platform"), authority.identity("bank")
    listener = Listener(
        "127.0.0.1:0", identity=lambda: platform, peer="bank", patience=2.0, admit=admit
    )
    with closing(listener):
        with pytest.raises(PeerError, match="refused us: our certificate is on its list") as error:
            dial(listener, bank)  # the first attempt failed there, and was repeated
        assert "secret" not in str(error.value)
        with pytest.raises(PeerLostError, match=r"'bank' \(revoked\) tried to connect"):
            listener.accept(0.1)
    assert certificates == [bank.certificate] * 2


@pytest.mark.parametrize("word", [*map(str, Refusal), "anything else", ""])
def test_every_word_has_a_meaning(word: str) -> None:
    assert meaning_of(word).isprintable()
    assert ("no known reason" in meaning_of(word)) is (word not in set(map(str, Refusal)))
