"""Connections of an HTTP server: total times, and who gives way when there are too many.

A connection belongs to the client (it sends a request, is idle, or receives a response) or to the
server (the request is complete and its response is being made). Time with the client is limited
in total, however often a byte moves. Once a client address, or the server, has all the connections
it may have, the one that has been with its client for longest gives way to the new one. Honest
clients send a request at once, so slow ones cost them nothing.
"""

import ipaddress
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from io import RawIOBase
from socket import SHUT_RDWR, socket
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

MAX_CONNECTIONS = 512
"""Most connections at a time; each has a thread."""
MAX_CONNECTIONS_PER_CLIENT = 128
"""Most connections of one address at a time."""
CLIENT_SECONDS = 30.0
"""Most seconds until a whole request has arrived, and again until its response has left."""


class TimedStream(RawIOBase):
    """The bytes of a socket, read and written within a total time."""

    def __init__(self, connection: socket) -> None:
        self._connection = connection
        self._end = monotonic()

    def start(self, seconds: float) -> None:
        """Allow this many seconds for everything from now on."""
        self._end = monotonic() + seconds

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def writable(self) -> bool:
        """Whether it can be written: yes."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read some bytes; raises TimeoutError once the time is over."""
        self._limit()
        return self._connection.recv_into(buffer)

    def write(self, content: "ReadableBuffer") -> int:
        """Write some bytes; raises TimeoutError once the time is over."""
        self._limit()
        return self._connection.send(content)

    def _limit(self) -> None:
        left = self._end - monotonic()
        if left <= 0:
            raise TimeoutError("the client took too long")
        self._connection.settimeout(left)


@dataclass(eq=False)
class Connection:
    """One open connection."""

    socket: socket
    client: str
    with_client_since: float | None = field(default_factory=monotonic)
    """None while the server makes a response."""

    def close(self) -> None:
        """End it; its thread notices at the next read or write, and closes the socket."""
        with suppress(OSError):  # the client was faster
            self.socket.shutdown(SHUT_RDWR)


class Connections:
    """All open connections of a server; safe from any thread.

    Args:
        most: connections at a time.
        most_per_client: connections of one address at a time.
    """

    def __init__(
        self, most: int = MAX_CONNECTIONS, most_per_client: int = MAX_CONNECTIONS_PER_CLIENT
    ) -> None:
        self._most, self._most_per_client = most, most_per_client
        self._lock = threading.Lock()
        self._open: dict[socket, Connection] = {}
        self._counts: Counter[str] = Counter()

    def admit(self, connection: socket, address: str) -> bool:
        """Admit a connection, in place of a slow one if need be; whether there is room for it."""
        client = client_of(address)
        with self._lock:
            if self._counts[client] >= self._most_per_client:
                room = self._dismiss_slowest(client)
            elif len(self._open) >= self._most:
                room = self._dismiss_slowest(max(self._counts, key=self._counts.__getitem__))
            else:
                room = True
            if room:
                self._open[connection] = Connection(connection, client)
                self._counts[client] += 1
            return room

    def set_with_client(self, connection: socket, is_with_client: bool) -> None:
        """Note who has the connection now."""
        with self._lock:
            if connection in self._open:
                since = monotonic() if is_with_client else None
                self._open[connection].with_client_since = since

    def remove(self, connection: socket) -> None:
        """Forget a connection that has ended."""
        with self._lock:
            self._forget(connection)

    def _dismiss_slowest(self, client: str) -> bool:
        """Close the connection that has been with this client for longest, if there is one."""
        slow = [
            (each.with_client_since, number)
            for number, each in enumerate(self._open.values())
            if each.client == client and each.with_client_since is not None
        ]
        if not slow:
            return False
        slowest = list(self._open.values())[min(slow)[1]]
        self._forget(slowest.socket)
        slowest.close()
        return True

    def _forget(self, connection: socket) -> None:
        known = self._open.pop(connection, None)
        if known is not None:
            self._counts[known.client] -= 1
            if not self._counts[known.client]:
                del self._counts[known.client]


def client_of(address: str) -> str:
    """Who an address belongs to: one IPv4 address, or the IPv6 network of 64 bits it is in.

    >>> client_of("10.0.0.7"), client_of("::ffff:10.0.0.7")
    ('10.0.0.7', '10.0.0.7')
    >>> client_of("2001:db8::1") == client_of("2001:db8::2")
    True
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
