"""Two parties connect over loopback, each with its certificate, or not at all."""

import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from vesper.deployment.certificate_watch import credentials_of
from vesper.deployment.config.party_config import load_party_config
from vesper.deployment.connect import peer_connection, peer_connector
from vesper.errors import InputError, PeerError
from vesper.transport.close_reason import CloseReason

if TYPE_CHECKING:
    from tests.conftest import Institutions


def frame_received(path: Path) -> bytes:
    with peer_connection(load_party_config(path)) as channel:
        channel.send(path.name.encode())
        return channel.receive()


def test_both_receive_frames(institutions: "Institutions") -> None:
    with ThreadPoolExecutor(2) as pool:
        received = list(pool.map(frame_received, institutions.settings))
    assert received == [b"label.toml", b"data.toml"]


def test_an_absent_peer(institutions: "Institutions") -> None:
    institutions.change("patience = 30.0", "patience = 0.2")
    institutions.change('when_lost = "wait"', 'when_lost = "stop"')
    for path in institutions.settings:
        with pytest.raises(PeerError):
            frame_received(path)


UNKNOWN = "the host 'no-such-host.invalid' cannot be resolved; set party.connect"


def test_a_host_that_nobody_knows_ends_the_first_connection_at_once(
    institutions: "Institutions",
) -> None:
    address = str(load_party_config(institutions.settings[1]).party.connect)
    institutions.change(f'connect = "{address}"', 'connect = "no-such-host.invalid:7101"')
    config = load_party_config(institutions.settings[1])
    assert config.party.when_lost == "wait"
    with peer_connector(config) as dial, pytest.raises(InputError, match=UNKNOWN):
        dial(None)


def test_a_host_that_is_not_known_later_is_waited_for(
    institutions: "Institutions", monkeypatch: pytest.MonkeyPatch
) -> None:
    data, label = (load_party_config(path) for path in institutions.settings)

    known = socket.getaddrinfo
    failures: list[object] = []

    def unknown(*address: Any, **options: Any) -> Any:
        if len(failures) < 2:
            failures.append(address)
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return known(*address, **options)

    with peer_connector(data) as accept, peer_connector(label) as dial:
        for _ in range(2):
            with ThreadPoolExecutor(1) as pool:
                accepted = pool.submit(accept, None)
                dial(None).close(CloseReason.DONE)
                accepted.result().close(CloseReason.DONE)
            monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert len(failures) == 2


def test_a_certificate_that_has_expired(institutions: "Institutions") -> None:
    config = load_party_config(institutions.settings[0])
    assert credentials_of(config).until > datetime.now(UTC)
    with pytest.raises(InputError, match="expired at"):
        credentials_of(config, now=datetime.now(UTC) + timedelta(days=100))
