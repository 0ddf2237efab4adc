"""Real sockets on loopback: limits, keep-alive, hosts, and clients that do not use HTTP."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection
from threading import Event, Semaphore, Thread

import pytest

from vesper.errors import InputError
from vesper.serving.http.connections import CLIENT_SECONDS, MAX_CONNECTIONS_PER_CLIENT
from vesper.serving.http.server import (
    MAX_BODY_BYTES,
    MAX_WORKING,
    HttpResponse,
    HttpServer,
    Responder,
    json_response,
)

JSON = {"Content-Type": "application/json"}


class Echo:
    """A service that returns the request."""

    def respond(self, method: str, path: str, kind: str, body: bytes) -> HttpResponse:
        return json_response(200, {"request": [method, path, kind, body.decode()]})


class Busy:
    """A service that is asked for `/wait` and takes until it is released; large on request."""

    def __init__(self) -> None:
        self.started, self.released = Semaphore(0), Event()

    def respond(self, method: str, path: str, kind: str, body: bytes) -> HttpResponse:
        if path == "/wait":
            self.started.release()
            self.released.wait(60)
        return HttpResponse(200, b"x" * (1 << 26 if path == "/large" else 1))


@contextmanager
def serving(
    service: Responder | None = None, *, client_seconds: float = CLIENT_SECONDS
) -> Iterator[tuple[int, list[str]]]:
    lines: list[str] = []
    with HttpServer(
        "127.0.0.1", 0, service or Echo(), log=lines.append, client_seconds=client_seconds
    ) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port, lines
        finally:
            server.shutdown()
            thread.join()


def status_of(port: int, path: str) -> int:
    with closing(HTTPConnection("127.0.0.1", port, timeout=20)) as client:
        client.request("GET", path)
        response = client.getresponse()
        response.read()
        return response.status


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


def test_slow_clients_keep_nobody_waiting() -> None:
    with serving() as (port, _), ExitStack() as slow:
        for k in range(MAX_CONNECTIONS_PER_CLIENT + 8):
            client = slow.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            client.sendall(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nX-Slow: "[: 1 + k])
        assert [status_of(port, path) for path in ("/health", "/", "/budget")] == [200] * 3


@pytest.mark.parametrize(
    "start", [b"", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999\r\n\r\n"]
)
def test_a_client_that_sends_a_byte_now_and_then_is_disconnected(start: bytes) -> None:
    with (
        serving(client_seconds=0.5) as (port, _),
        socket.create_connection(("127.0.0.1", port), timeout=0.1) as client,
    ):
        client.sendall(start)
        assert any(is_disconnected(client) for _ in range(400))


def is_disconnected(client: socket.socket) -> bool:
    try:
        client.sendall(b"x")
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_a_client_that_reads_a_byte_now_and_then_is_disconnected() -> None:
    with (
        serving(Busy(), client_seconds=0.5) as (port, _),
        socket.create_connection(("127.0.0.1", port), timeout=20) as client,
    ):
        client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        received = 0
        for _ in range(40):
            received += len(client.recv(1))
            time.sleep(0.05)  # at this pace the response would take weeks
        with suppress(ConnectionError):
            while part := client.recv(1 << 20):
                received += len(part)
    assert received < 1 << 26


def test_a_busy_server_says_so_and_its_health_is_still_shown() -> None:
    service = Busy()
    with serving(service) as (port, _), ExitStack() as waiting:
        for _ in range(MAX_WORKING):
            client = waiting.enter_context(closing(HTTPConnection("127.0.0.1", port)))
            client.request("GET", "/wait")
        for _ in range(MAX_WORKING):
            assert service.started.acquire(timeout=60)
        with closing(HTTPConnection("127.0.0.1", port, timeout=20)) as client:
            client.request("GET", "/budget")
            response = client.getresponse()
            assert (response.status, response.headers["Retry-After"]) == (503, "1")
            assert set(json.loads(response.read())) == {"error", "what_to_do"}
        assert status_of(port, "/health") == 200
        service.released.set()
    with serving(service) as (port, _):
        assert status_of(port, "/wait") == 200


def test_incomplete_bodies_are_not_answered() -> None:
    with serving() as (port, _):
        sent = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc"
        assert raw(port, sent) == b""


@pytest.mark.parametrize("method", [b"TRACE", b"CONNECT"])
def test_unusual_methods_reach_the_service(method: bytes) -> None:
    with serving() as (port, _):
        response = raw(port, method + b" /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert response.startswith(b"HTTP/1.1 200 ")
    assert method in response
