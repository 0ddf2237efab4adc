"""Real sockets on loopback: limits, keep-alive, hosts, and clients that do not use HTTP."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from threading import Thread

import pytest

from vesper.errors import InputError
from vesper.serving.http.server import MAX_BODY_BYTES, HttpResponse, HttpServer, json_response

JSON = {"Content-Type": "application/json"}


class Echo:
    """A service that returns the request."""

    def respond(self, method: str, path: str, kind: str, body: bytes) -> HttpResponse:
        return json_response(200, {"request": [method, path, kind, body.decode()]})


@contextmanager
def serving() -> Iterator[tuple[int, list[str]]]:
    lines: list[str] = []
    with HttpServer("127.0.0.1", 0, Echo(), log=lines.append) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port, lines
        finally:
            server.shutdown()
            thread.join()


def raw(port: int, sent: bytes) -> bytes:
    with closing(socket.create_connection(("127.0.0.1", port), timeout=10)) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        parts = []
        while part := client.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def test_requests_on_one_connection() -> None:
    with serving() as (port, lines), closing(HTTPConnection("127.0.0.1", port)) as client:
        for k in range(3):
            client.request("POST", f"/{k}", b'{"ids": [1]}', JSON)
            response = client.getresponse()
            content = json.loads(response.read())
            assert content["request"] == ["POST", f"/{k}", "application/json", '{"ids": [1]}']
            assert response.headers["X-Content-Type-Options"] == "nosniff"
        client.request("HEAD", "/")
        assert client.getresponse().read() == b""
    assert any("POST /1" in line for line in lines)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"Content-Length: 99999999\r\n", 413),
        (b"Content-Length: " + b"9" * 30 + b"\r\n", 413),
        (b"Content-Length: -1\r\n", 411),
        (b"Content-Length: two\r\n", 411),
        (b"Transfer-Encoding: chunked\r\n", 411),
    ],
)
def test_bodies_that_must_not_be_read(head: bytes, status: int) -> None:
    with serving() as (port, _):
        response = raw(port, b"POST /predict HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n")
    assert response.startswith(b"HTTP/1.1 %d " % status)
    assert set(json.loads(response.partition(b"\r\n\r\n")[2])) == {"error", "what_to_do"}


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"NONSENSE\r\n\r\n",
        b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
    ],
    ids=lambda sent: repr(sent[:12]),
)
def test_invalid_requests_are_refused_in_json_and_the_server_continues(sent: bytes) -> None:
    with serving() as (port, lines):
        response = raw(port, sent)
        assert b"Traceback" not in response
        content = json.loads(response.partition(b"\r\n\r\n")[2])
        assert set(content) == {"error", "what_to_do"}
        with closing(HTTPConnection("127.0.0.1", port)) as client:
            client.request("GET", "/")
            assert client.getresponse().status == 200
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("127.0.0.1:99", 200),
        ("[::1]:99", 200),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("", 403),
    ],
)
def test_only_names_of_this_machine_lead_to_a_loopback_server(host: str, status: int) -> None:
    with serving() as (port, _):
        response = raw(port, f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert response.startswith(b"HTTP/1.1 %d " % status)


def test_the_largest_body_is_read_and_a_client_may_leave() -> None:
    with serving() as (port, lines):
        with closing(HTTPConnection("127.0.0.1", port)) as client:
            client.request("POST", "/predict", b"x" * MAX_BODY_BYTES, JSON)
            assert client.getresponse().status == 200
        raw(port, b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc")
    assert not any("Traceback" in line for line in lines)


def test_a_taken_port_is_named() -> None:
    with serving() as (port, _), pytest.raises(InputError, match="taken"):
        HttpServer("127.0.0.1", port, Echo(), log=lambda line: None)
    with pytest.raises(InputError, match="cannot listen"):
        HttpServer("no.such.host.invalid", 0, Echo(), log=lambda line: None)
