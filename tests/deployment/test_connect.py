"""Two parties connect over loopback, each with its certificate, or not at all."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vesper.deployment.certificate_watch import credentials_of
from vesper.deployment.config.party_config import load_party_config
from vesper.deployment.connect import peer_connection
from vesper.errors import InputError, PeerError

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


def test_a_certificate_that_has_expired(institutions: "Institutions") -> None:
    config = load_party_config(institutions.settings[0])
    assert credentials_of(config).until > datetime.now(UTC)
    with pytest.raises(InputError, match="expired at"):
        credentials_of(config, now=datetime.now(UTC) + timedelta(days=100))
