"""Who gives way when there are too many connections, and total times of reading and writing."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from vesper.serving.http.connections import Connections, TimedStream, client_of


@pytest.fixture
def pairs() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    with ExitStack() as stack:
        made = [socket.socketpair() for _ in range(6)]
        for each in made:
            for end in each:
                stack.enter_context(closing(end))
                end.settimeout(20)
        yield made


Pairs = list[tuple[socket.socket, socket.socket]]


def is_open(pair: tuple[socket.socket, socket.socket]) -> bool:
    pair[1].setblocking(False)
    try:
        return pair[1].recv(1) != b""
    except BlockingIOError:
        return True


def test_the_slowest_connection_of_a_client_gives_way(pairs: Pairs) -> None:
    connections = Connections(most=9, most_per_client=2)
    assert connections.admit(pairs[0][0], "10.0.0.2")
    assert connections.admit(pairs[1][0], "10.0.0.1")
    assert connections.admit(pairs[2][0], "10.0.0.1")
    connections.set_with_client(pairs[1][0], False)
    connections.set_with_client(pairs[1][0], True)  # it sent a request: now the other is slower
    assert connections.admit(pairs[3][0], "10.0.0.1")
    assert [is_open(pair) for pair in pairs[:4]] == [True, True, False, True]


def test_requests_in_progress_never_give_way(pairs: Pairs) -> None:
    connections = Connections(most=9, most_per_client=2)
    for pair in pairs[:2]:
        assert connections.admit(pair[0], "10.0.0.1")
        connections.set_with_client(pair[0], False)
    assert not connections.admit(pairs[2][0], "10.0.0.1")
    assert connections.admit(pairs[3][0], "10.0.0.2")
    connections.remove(pairs[0][0])
    connections.remove(pairs[0][0])  # removed when it fails, and again when its thread ends
    assert connections.admit(pairs[4][0], "10.0.0.1")
    assert all(is_open(pair) for pair in pairs)


def test_of_all_clients_the_one_with_most_connections_gives_way(pairs: Pairs) -> None:
    connections = Connections(most=3, most_per_client=3)
    for pair, client in zip(pairs, ("10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.3"), strict=False):
        assert connections.admit(pair[0], client)
    assert [is_open(pair) for pair in pairs[:4]] == [True, False, True, True]


def test_clients_are_ipv4_addresses_and_ipv6_networks() -> None:
    assert client_of("192.0.2.1") != client_of("192.0.2.2")
    assert client_of("::ffff:192.0.2.1") == client_of("192.0.2.1")
    assert client_of("2001:db8::1%eth0") == client_of("2001:db8::ffff")
    assert client_of("2001:db8::1") != client_of("2001:db8:0:1::1")
    assert client_of("not an address") == "not an address"


def test_no_byte_is_read_or_written_once_the_time_is_over(pairs: Pairs) -> None:
    near, far = pairs[0]
    stream = TimedStream(near)
    stream.start(20)
    assert stream.readable()
    assert stream.writable()
    assert stream.write(b"ab") == 2
    far.sendall(b"cd")
    assert stream.read(1) == b"c"
    stream.start(0)
    with pytest.raises(TimeoutError):
        stream.read(1)
    with pytest.raises(TimeoutError):
        stream.write(b"x")
