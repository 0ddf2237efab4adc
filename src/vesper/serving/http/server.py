"""HTTP server with limits on sizes, times and threads; parser of requests; responses.

Built on the standard library, for programs within one institution: it listens on loopback by
default, and knows no users or passwords. Put a proxy in front of it where that is not enough.

Clients of `vesper serve` send {"ids": ["u1", 7]}, which is not trusted. Ids are integers or text
and are compared as text, so 7 and "7" are one node.
"""

import base64
import hashlib
import ipaddress
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6, socket
from threading import BoundedSemaphore
from typing import Any, NoReturn, Protocol

from vesper.errors import InputError, first_three

MAX_BODY_BYTES = 1 << 20
"""Most bytes in the body of a request."""
MAX_IDS = 10_000
"""Most ids in a request."""
MAX_ID_LENGTH = 256

Id = str | int


@dataclass
class BadRequestError(Exception):
    """A mistake of the client: status, what is wrong, what to do."""

    status: int
    error: str
    what_to_do: str


def parse_ids(body: bytes) -> list[Id]:
    """Parse the ids of a request; they keep their types.

    Raises:
        BadRequestError: the body is anything but an object with a list of ids.
    """
    try:
        request = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(
            400, f"expected JSON, got something else ({_short(error)})", EXAMPLE
        ) from None
    if (
        not isinstance(request, dict)
        or set(request) != {"ids"}
        or not isinstance(request["ids"], list)
    ):
        raise BadRequestError(
            400, 'expected an object with "ids", a list, and nothing else', EXAMPLE
        )
    ids = request["ids"]
    if not 1 <= len(ids) <= MAX_IDS:
        raise BadRequestError(
            400,
            f"expected 1 to {MAX_IDS} ids, got {len(ids)}",
            "send several requests, or use `vesper predict` for a whole file",
        )
    wrong = [each for each in ids if not _is_id(each)]
    if wrong:
        raise BadRequestError(
            400,
            f"expected ids that are text of 1 to {MAX_ID_LENGTH} characters or 64-bit integers; "
            f"{len(wrong)} are not ({first_three(json.dumps(each)[:40] for each in wrong)})",
            EXAMPLE,
        )
    return ids


EXAMPLE = 'send {"ids": ["u1", "u2"]} as application/json'


def _is_id(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return isinstance(value, str) and 1 <= len(value) <= MAX_ID_LENGTH and _is_utf8(value)


def _is_utf8(text: str) -> bool:
    """Whether text can be encoded: JSON can hold half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _short(error: Exception) -> str:
    return str(error)[:80] if not isinstance(error, RecursionError) else "too many brackets"


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


MAX_THREADS = 64
CLIENT_TIMEOUT = 30.0
"""Seconds after which a silent client is disconnected."""


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

    def __init__(
        self, host: str, port: int, service: Responder, *, log: Callable[[str], None]
    ) -> None:
        self.service, self.log = service, log
        self.address_family = AF_INET6 if ":" in host else AF_INET
        self.hosts = _loopback_names(host)
        self._free = BoundedSemaphore(MAX_THREADS)
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise InputError(
                f"--host, --port: cannot listen on {host}:{port} ({error}); is the port taken?"
            ) from None

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for the request; wait for a free one if all are busy."""
        self._free.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle the request and free its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log that a client left in the middle; it is not worth a traceback."""
        self.log("a client left before it received a response")


class _Handler(BaseHTTPRequestHandler):
    server: HttpServer
    connection: socket
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "vesper", ""
    timeout = CLIENT_TIMEOUT
    wbufsize = -1  # head and body go out together: separately, the body would wait 40 ms
    disable_nagle_algorithm = True

    def _respond(self) -> None:
        problem = self._problem()
        if problem is not None:
            self.close_connection = True  # the body is not read
            self._write(problem)
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        kind = self.headers.get("Content-Type", "")
        self._write(self.server.service.respond(self.command, self.path, kind, body))

    do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _respond

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
