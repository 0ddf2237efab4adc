"""Certificates during a run: renewal without a restart, expiry that both mention, revocation."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from tests.fixtures.observers import CallingObserver

from vesper.deployment.certificate_watch import CertificateWatch
from vesper.deployment.config.party_config import PartyConfig, load_party_config
from vesper.deployment.connect import open_party_channel, peer_connection, peer_connector
from vesper.deployment.identity.authority import make_authority, read_authority, sign
from vesper.deployment.identity.credentials import read_key
from vesper.deployment.identity.request import fingerprint_of, make_request
from vesper.errors import InputError, PeerError
from vesper.transport.durable_channel import DurableChannel
from vesper.transport.refusal import Refusal
from vesper.transport.stream import StreamChannel

if TYPE_CHECKING:
    from tests.conftest import Institutions

DAYS = 90
"""Days that the certificates of these tests are valid."""


def configs(institutions: "Institutions") -> list[PartyConfig]:
    return [load_party_config(path) for path in institutions.settings]


def clock(days: float) -> Callable[[], datetime]:
    return lambda: datetime.now(UTC) + timedelta(days=days)


def certify(institutions: "Institutions", name: str, *, until: datetime | None = None) -> None:
    """Give a party a new key and certificate."""
    tls = institutions.root / name / "tls"
    now = datetime.now(UTC)
    key, request_path, request = make_request(name, [], tls / "new")
    authority = read_authority(institutions.root / "authority", now=now)
    since = now if until is None else until - timedelta(days=1)
    signed = sign(authority, request, days=DAYS if until is None else 1, now=since)
    request_path.unlink()
    (tls / f"{name}.pem").write_bytes(signed.public_bytes(Encoding.PEM))
    key.rename(tls / f"{name}.key")


def revoke(institutions: "Institutions", name: str, path: Path) -> None:
    key = read_key(institutions.root / name / "tls" / f"{name}.key")
    path.write_text(f"{fingerprint_of(key.public_key())}\n")


@pytest.mark.parametrize(
    ("days", "message"),
    [
        (DAYS - 31, None),
        (DAYS - 29, "the certificate of this party expires at"),
        (DAYS + 1, "platform.pem: expired at"),
    ],
)
def test_the_end_of_the_own_certificate_is_reported_once(
    institutions: "Institutions", days: int, message: str | None
) -> None:
    warnings: list[str] = []
    watch = CertificateWatch(configs(institutions)[0], warn=warnings.append, clock=clock(days))
    for _ in range(3):
        watch.report()
    assert len(warnings) == (message is not None)
    assert all(message in line for line in warnings if message)


@pytest.mark.parametrize(
    ("days", "message"),
    [
        (DAYS - 31, None),
        (DAYS - 29, "the certificate of bank, as last seen, expires at"),
        (DAYS + 1, "the certificate of bank, as last seen, expired at"),
    ],
)
def test_the_end_of_the_peers_certificate_is_reported(
    institutions: "Institutions", days: int, message: str | None
) -> None:
    warnings: list[str] = []
    watch = CertificateWatch(configs(institutions)[0], warn=warnings.append, clock=clock(days))
    pem = (institutions.label / "tls" / "bank.pem").read_bytes()
    assert watch.refusal_of(pem) is None
    watch.report()
    watch.report()
    about_bank = [line for line in warnings if "bank" in line.split("expire")[0]]
    assert len(about_bank) == (message is not None)
    assert all(message in line for line in about_bank if message)


def test_new_files_are_read_and_unchanged_ones_are_not(institutions: "Institutions") -> None:
    watch = CertificateWatch(configs(institutions)[0])
    first = watch.identity()
    assert watch.identity() is first
    certify(institutions, "platform")
    second = watch.identity()
    assert second != first
    assert second.certificate == (institutions.data / "tls" / "platform.pem").read_bytes()


def test_a_revoked_key_is_refused_on_either_side(
    institutions: "Institutions", tmp_path: Path
) -> None:
    path, warnings = tmp_path / "revoked.txt", list[str]()
    path.write_text("")
    institutions.change("#revoked =", f'revoked = "{path}"')
    watch = CertificateWatch(configs(institutions)[0], warn=warnings.append)
    pem = (institutions.label / "tls" / "bank.pem").read_bytes()
    assert watch.refusal_of(pem) is None
    revoke(institutions, "bank", path)
    assert watch.refusal_of(pem) is Refusal.REVOKED
    assert "bank was refused: its certificate is on the list" in warnings[0]
    with pytest.raises(InputError, match=r"bank.pem: is on the list .* of revoked certificates"):
        CertificateWatch(configs(institutions)[1]).identity()
    path.unlink()
    with pytest.raises(InputError, match="the list of revoked certificates cannot be read"):
        watch.refusal_of(pem)


@pytest.mark.parametrize("lister", ["platform", "bank"])
def test_a_revoked_peer_gets_no_connection(
    institutions: "Institutions", tmp_path: Path, lister: str
) -> None:
    path, revoked = tmp_path / "revoked.txt", "bank" if lister == "platform" else "platform"
    revoke(institutions, revoked, path)
    institutions.change("patience = 30.0", "patience = 2.0")
    institutions.change('when_lost = "wait"', 'when_lost = "stop"')
    settings = institutions.settings[lister == "bank"]
    settings.write_text(settings.read_text().replace("#revoked =", f'revoked = "{path}"'))

    def outcome(config: PartyConfig) -> str:
        try:
            with peer_connection(config):
                return "connected"
        except PeerError as error:
            return str(error)

    with ThreadPoolExecutor(2) as pool:
        platform, bank = pool.map(outcome, configs(institutions))
    assert "has not connected" in platform
    assert "revoked ones" in bank


def make_old_authority(institutions: "Institutions") -> None:
    """Replace the authority by one that can have signed yesterday."""
    folder, yesterday = institutions.root / "authority", datetime.now(UTC) - timedelta(days=2)
    for path in folder.iterdir():
        path.unlink()
    authority = make_authority(folder, name="tests", now=yesterday)
    for party in (institutions.data, institutions.label):
        pem = authority.certificate.public_bytes(Encoding.PEM)
        (party / "tls" / "authority.pem").write_bytes(pem)


def has(lines: list[str], text: str) -> bool:
    return any(text in line for line in lines)


def wait_until(condition: Callable[[], bool], *running: threading.Thread) -> None:
    while not condition():
        assert all(thread.is_alive() for thread in running)
        threading.Event().wait(0.05)


def test_a_certificate_that_expires_during_a_run_is_mentioned_by_both_and_replaced(
    institutions: "Institutions",
) -> None:
    make_old_authority(institutions)
    until = (datetime.now(UTC) + timedelta(seconds=6)).replace(microsecond=0)
    certify(institutions, "bank", until=until)
    certify(institutions, "platform")
    warnings: dict[str, list[str]] = {"data": [], "label": []}
    channels: dict[str, DurableChannel] = {}
    with ExitStack() as stack:
        for config in configs(institutions):
            config.party.state.mkdir(exist_ok=True)
            warn = warnings[config.party.role].append
            connect = stack.enter_context(peer_connector(config, warn=warn))
            observer = CallingObserver(warning=warn)
            channel = stack.enter_context(closing(open_party_channel(config, connect, observer)))
            channels[config.party.role] = channel

        def answer() -> None:
            channels["data"].send(b"one")
            assert channels["data"].receive() == b"two"
            channels["data"].send(b"three")

        answering = threading.Thread(target=answer, daemon=True)
        answering.start()
        assert channels["label"].receive() == b"one"
        wait_until(lambda: datetime.now(UTC) > until, answering)
        lost = channels["label"]._reconnector._channel

        assert isinstance(lost, StreamChannel)
        lost.abandon()
        received: list[bytes] = []

        def proceed() -> None:
            channels["label"].send(b"two")
            received.append(channels["label"].receive())

        proceeding = threading.Thread(target=proceed, daemon=True)
        proceeding.start()
        for role, text in (
            ("label", "bank.pem: expired at"),
            ("data", "the certificate of bank, as last seen, expired at"),
        ):
            wait_until(partial(has, warnings[role], text), proceeding, answering)
        certify(institutions, "bank")  # both are still running
        proceeding.join()
        answering.join()
        assert received == [b"three"]
