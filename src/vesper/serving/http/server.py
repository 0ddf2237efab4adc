"""HTTP server with limits on sizes, times and connections; responses.

Built on the standard library, for programs within one institution: it listens on loopback by
default, and knows no users or passwords. Put a proxy in front of it where that is not enough.
"""

import base64
import hashlib
import ipaddress
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedReader, BufferedWriter
from socket import AF_INET, AF_INET6, IPPROTO_TCP, TCP_NODELAY, socket
from threading import BoundedSemaphore
from typing import Any, Protocol

from vesper.errors import InputError
from vesper.serving.http.connections import CLIENT_SECONDS, Connections, TimedStream

MAX_BODY_BYTES = 1 << 20
"""Most bytes in the body of a request."""
JSON = "application/json"


@dataclass(frozen=True)
class HttpResponse:
    """Status, content and headers of a response, before it becomes bytes on a socket."""

    status: int
    content: bytes
    kind: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


class Responder(Protocol):
    """Responds to requests, from any thread."""

    def respond(self, method: str, path: str, kind: str, body: bytes) -> HttpResponse:
        """Respond to one request; never raises."""


def json_response(status: int, facts: Mapping[str, Any]) -> HttpResponse:
    """Make a JSON response; all numbers must be finite."""
    return HttpResponse(status, json.dumps(facts, allow_nan=False).encode())


def error_response(status: int, error: str, what_to_do: str) -> HttpResponse:
    """Make a response that states what is wrong and what to do, and nothing else."""
    return json_response(status, {"error": error, "what_to_do": what_to_do})


def page_response(page: str, *, policy: str) -> HttpResponse:
    """Make a response with a page for people and its content security policy."""
    headers = {"Content-Security-Policy": policy}
    return HttpResponse(200, page.encode(), kind="text/html; charset=utf-8", headers=headers)


def policy_of(*, script: str, style: str) -> str:
    """Allow the browser this script, this style, requests to this server, and nothing else."""
    return (
        f"default-src 'none'; connect-src 'self'; script-src {_hash_of(script)}; "
        f"style-src {_hash_of(style)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


MAX_WORKING = 64
"""Most responses being made at a time; further requests are told to come back."""
ALWAYS_ANSWERED = frozenset({"/health"})
"""Paths that need no free place: they say whether the server is alive."""


class HttpServer(ThreadingHTTPServer):
    """Listens until `shutdown`.

    Args:
        host: address to listen on.
        port: to listen on; 0 picks a free one.
        service: responds to the requests.
        log: receives one line per request.

    Raises:
        InputError: the server cannot listen on this address.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        host: str,
        port: int,
        service: Responder,
        *,
        log: Callable[[str], None],
        client_seconds: float = CLIENT_SECONDS,
    ) -> None:
        self.service, self.log, self.client_seconds = service, log, client_seconds
        self.address_family = AF_INET6 if ":" in host else AF_INET
        self.hosts = _loopback_names(host)
        self.connections, self._places = Connections(), BoundedSemaphore(MAX_WORKING)
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise InputError(
                f"--host, --port: cannot listen on {host}:{port} ({error}); is the port taken?"
            ) from None

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection; never waits."""
        if not self.connections.admit(request, client_address[0]):
            self.log(f"{client_address[0]} has too many requests in progress; refused")
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle the requests of a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.connections.remove(request)

    def respond(self, method: str, path: str, kind: str, body: bytes) -> HttpResponse:
        """Respond if a place is free."""
        if path.partition("?")[0] in ALWAYS_ANSWERED:
            return self.service.respond(method, path, kind, body)
        if not self._places.acquire(blocking=False):
            response = error_response(
                503, f"{MAX_WORKING} requests are in progress", "try again in a second"
            )
            return HttpResponse(503, response.content, headers={"Retry-After": "1"})
        try:
            return self.service.respond(method, path, kind, body)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log that a client left in the middle; it is not worth a traceback."""
        self.connections.remove(request)
        self.log("a client left before it received a response")


class _Handler(BaseHTTPRequestHandler):
    server: HttpServer
    connection: socket
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "vesper", ""

    def setup(self) -> None:
        """Read and write within a total time, head and body of a response in one piece."""
        self.connection = self.request
        self.connection.setsockopt(IPPROTO_TCP, TCP_NODELAY, True)
        self._stream = TimedStream(self.connection)
        self.rfile, self.wfile = BufferedReader(self._stream), BufferedWriter(self._stream)

    def handle_one_request(self) -> None:
        """Give the client a limited time to send one request, and the same to take its response."""
        self._wait_for_client()
        super().handle_one_request()

    def _wait_for_client(self) -> None:
        self._stream.start(self.server.client_seconds)
        self.server.connections.set_with_client(self.connection, True)

    def _respond(self) -> None:
        problem = self._problem()
        if problem is not None:
            self.close_connection = True  # the body is not read
            self._write(problem)
            return
        length = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionResetError("the client left within a request")
        self.server.connections.set_with_client(self.connection, False)
        kind = self.headers.get("Content-Type", "")
        response = self.server.respond(self.command, self.path, kind, body)
        self._wait_for_client()
        self._write(response)

    do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _respond
    do_TRACE = do_CONNECT = _respond

    def _problem(self) -> HttpResponse | None:
        """Refuse from the headers what must not be read."""
        if self.server.hosts and _host_in(self.headers.get("Host", "")) not in self.server.hosts:
            return error_response(
                403, "this server is only for this machine", "use localhost as host"
            )
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            return error_response(411, "expected Content-Length", "send the length of the body")
        if len(length) > 12 or int(length) > MAX_BODY_BYTES:
            return error_response(413, f"expected at most {MAX_BODY_BYTES} bytes", "send fewer ids")
        return None

    def _write(self, response: HttpResponse) -> None:
        self.send_response(response.status)
        self.send_header("Content-Type", response.kind)
        self.send_header("Content-Length", str(len(response.content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        for name, value in response.headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send what the library refuses in the same form as every other error."""
        self.command = getattr(self, "command", None) or "GET"
        self.request_version = "HTTP/1.1"
        self.close_connection = True
        self._write(error_response(int(code), message or "refused", "send an HTTP/1.1 request"))

    def log_message(self, format: str, *args: Any) -> None:
        """Log the client and its request in one printable line."""
        line = "".join(c if c.isprintable() else "?" for c in format % args)
        self.server.log(f"{self.client_address[0]} {line[:200]}")


def _host_in(header: str) -> str:
    """The host in a Host header, without the port.

    >>> _host_in("LOCALHOST:8080"), _host_in("[::1]:8080"), _host_in("")
    ('localhost', '::1', '')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


def _loopback_names(host: str) -> frozenset[str]:
    """Names under which a loopback address may be requested; empty if every name is allowed.

    Otherwise a page of another site could point its own name here and read the responses.
    """
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    return frozenset({"localhost", "127.0.0.1", "::1", host}) if is_loopback else frozenset()
