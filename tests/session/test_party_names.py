"""Names of parties and of hosts cannot be mistaken for each other."""

import pytest

from vesper.session.party_names import host_name, party_name

PARTIES = ["platform", "bank-2", "7", "a" * 63]
HOSTS = ["bank.example", "localhost", "127.0.0.1", "::1", "a.b-c.d"]
NEITHER = ["", "Bank", "a b", "-a", "a-", "a_b", "bänk", "a\n", "*.example", "a..b", "fe80::1%lo"]


@pytest.mark.parametrize("name", PARTIES)
def test_parties(name: str) -> None:
    assert party_name(name) == name
    with pytest.raises(ValueError, match="expected an IP address or"):
        host_name(name)


@pytest.mark.parametrize("name", HOSTS)
def test_hosts(name: str) -> None:
    assert host_name(name) == name
    with pytest.raises(ValueError, match="expected one word"):
        party_name(name)


@pytest.mark.parametrize("name", [*NEITHER, "a" * 64])
def test_neither(name: str) -> None:
    for check in (party_name, host_name):
        with pytest.raises(ValueError, match="expected"):
            check(name)
