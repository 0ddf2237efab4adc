"""Frames over gRPC with mutual TLS: one two-way stream, raw bytes, both ends known by name.

The listening end takes one peer, whose certificate must carry the expected name; a new connection
of that peer replaces an old one, which the network may have cut without telling. The connecting end
checks the name of the listener the same way. Nothing is compressed.

Who this side is and whom it trusts, for mutual TLS.
"""

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import grpc

from vesper.errors import InputError, PeerError, PeerLostError
from vesper.transport.stream import CHUNK, StreamChannel, Waiting, unheard


@dataclass(frozen=True)
class Identity:
    """PEM texts: own certificate and key, and the authority that both sides trust."""

    certificate: bytes
    key: bytes = field(repr=False)
    authority: bytes


SERVICE, METHOD = "vesper.Exchange", "Frames"
OPTIONS = [
    ("grpc.max_receive_message_length", 2 * CHUNK),
    ("grpc.max_send_message_length", 2 * CHUNK),
    ("grpc.so_reuseport", 0),
    ("grpc.http2.max_frame_size", 1 << 20),
]
ACCEPTED_HEADER = ("vesper-welcome", "1")
"""Tells the connecting end that it was let in."""
RETRY_SECONDS = 0.5
"""Seconds between two attempts to reach the peer."""


class Listener:
    """Waits at an address for the one peer that may come.

    Args:
        address: `host:port`; port 0 takes a free one.
        identity: own certificate and key, and the trusted authority.
        peer: name that the peer's certificate must carry.
        patience: of the channels that are accepted.
        waiting: is told while somebody waits for the peer.

    Raises:
        InputError: the address cannot be listened at, or the identity cannot be used.
    """

    def __init__(
        self,
        address: str,
        *,
        identity: Identity,
        peer: str,
        patience: float,
        waiting: Waiting = unheard,
    ) -> None:
        self._peer, self._patience, self._waiting = peer, patience, waiting
        self._arrivals: queue.SimpleQueue[StreamChannel] = queue.SimpleQueue()
        self._current: StreamChannel | None = None
        self._is_closed = False
        self.last_refused = ""
        """Who came last and was not let in."""
        self._server = grpc.server(ThreadPoolExecutor(max_workers=8), options=OPTIONS)
        handler: Any = grpc.stream_stream_rpc_method_handler(self._handle)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),)
        )
        try:
            credentials = grpc.ssl_server_credentials(
                [(identity.key, identity.certificate)], identity.authority, True
            )
            self.port = self._server.add_secure_port(address, credentials)
        except (RuntimeError, ValueError) as error:
            raise InputError(
                f"listen: cannot listen at {address} ({_short(error)}); is the port taken?"
            ) from None
        self._server.start()

    def accept(self, limit: float | None = None) -> StreamChannel:
        """Wait for the peer, for ever or at most `limit` seconds."""
        began = monotonic()
        while True:
            try:
                channel = self._arrivals.get(timeout=RETRY_SECONDS)
            except queue.Empty:
                waited = monotonic() - began
                self._waiting(waited)
                if limit is not None and waited > limit:
                    raise PeerLostError(
                        f"{self._peer} has not come for {waited:.0f} s{self._refusals()}"
                    ) from None
                continue
            while not self._arrivals.empty():  # only the newest is still there
                channel = self._arrivals.get()
            return channel

    def close(self) -> None:
        """Listen no more; a peer that has just come, and that nobody waited for, is dropped."""
        self._is_closed = True
        if self._current is not None:
            self._current.abandon()
        self._server.stop(grace=None)

    def _refusals(self) -> str:
        return f"; {self.last_refused} came and was refused" if self.last_refused else ""

    def _handle(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        names = _names_of(context.auth_context())
        if self._peer not in names:
            self.last_refused = f"'{', '.join(names)}'"
            context.abort(
                grpc.StatusCode.PERMISSION_DENIED,
                f"expected the certificate of '{self._peer}', got that of {self.last_refused}",
            )
        context.send_initial_metadata((ACCEPTED_HEADER,))
        channel = StreamChannel(
            peer=self._peer,
            patience=self._patience,
            cancel=context.cancel,
            waiting=self._waiting,
        )
        if self._current is not None:
            self._current.end_input(PeerLostError(f"{self._peer} has connected anew"))
        self._current = channel
        self._arrivals.put(channel)
        if self._is_closed:
            channel.abandon()  # else this thread would keep the process from ending
        threading.Thread(target=_read, args=(channel, requests, self._peer), daemon=True).start()
        yield from channel.outgoing_chunks()


def connect(
    address: str,
    *,
    identity: Identity,
    peer: str,
    patience: float,
    waiting: Waiting = unheard,
    limit: float | None = None,
) -> StreamChannel:
    """Reach the peer that listens at `address`, for ever or for at most `limit` seconds.

    Raises:
        PeerError: the peer is not who it should be, or does not know us; trying again cannot help.
        PeerLostError: nobody answered within the limit.
    """
    began = monotonic()
    while True:
        try:
            return _attempt(
                address, identity=identity, peer=peer, patience=patience, waiting=waiting
            )
        except PeerLostError as error:
            waited = monotonic() - began
            waiting(waited)
            if limit is not None and waited > limit:
                raise PeerLostError(f"{peer} at {address}: {error}") from None
            threading.Event().wait(RETRY_SECONDS)


def _attempt(
    address: str, *, identity: Identity, peer: str, patience: float, waiting: Waiting
) -> StreamChannel:
    credentials = grpc.ssl_channel_credentials(
        identity.authority, identity.key, identity.certificate
    )
    options = [*OPTIONS, ("grpc.ssl_target_name_override", peer), ("grpc.enable_retries", 0)]
    wire = grpc.secure_channel(address, credentials, options=options)
    channel = StreamChannel(peer=peer, patience=patience, cancel=wire.close, waiting=waiting)
    open_stream: Any = wire.stream_stream(f"/{SERVICE}/{METHOD}")
    call = open_stream(channel.outgoing_chunks())
    opened: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()

    def watch() -> None:
        try:
            welcome = ACCEPTED_HEADER in [tuple(pair) for pair in call.initial_metadata()]
            problem = None if welcome else _problem_of(call, peer)  # waits for the reason
        except grpc.RpcError as error:
            problem = _problem_of(error, peer)
        opened.put(problem)

    threading.Thread(target=watch, daemon=True).start()
    try:
        problem = opened.get(timeout=patience)
    except queue.Empty:
        problem = PeerLostError(f"{peer} did not answer within {patience:g} s")
    if problem is not None:
        channel.end_input(problem)  # nothing will come, so closing need not wait for it
        channel.close()
        raise problem
    threading.Thread(target=_read, args=(channel, call, peer), daemon=True).start()
    return channel


def _read(channel: StreamChannel, chunks: Iterator[bytes], peer: str) -> None:
    try:
        for chunk in chunks:
            channel.receive_chunk(chunk)
        channel.end_input(PeerLostError(f"the connection to {peer} is gone"))
    except grpc.RpcError as error:
        channel.end_input(_problem_of(error, peer))
    except Exception as error:  # the listening end gets a plain exception when a stream breaks
        channel.end_input(PeerLostError(f"the connection to {peer} broke ({_short(error)})"))


def _problem_of(error: Any, peer: str) -> PeerError:
    """Say what went wrong, and whether it can get better by itself."""
    if not isinstance(error, grpc.Call):  # the listening end is told no reason
        return PeerLostError(f"the connection to {peer} is gone")
    details = str(error.details() or "")
    if error.code() is grpc.StatusCode.PERMISSION_DENIED:
        return PeerError(f"{peer} refused us: {details}")
    for sign, meaning in _TLS_PROBLEMS.items():
        if sign in details:
            return PeerError(f"{peer}: {meaning} ({sign})")
    return PeerLostError(f"the connection to {peer} is gone ({details.strip() or error.code()})")


_TLS_PROBLEMS = {
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not one of the authority in [tls], or expired",
    "certificate signature failure": "its certificate is not one of the authority in [tls]",
    "Hostname Verification Check failed": "its certificate carries another name than `peer`",
    "CERTIFICATE_REQUIRED": "it wants a certificate and got none",
    "UNKNOWN_CA": "it does not trust the authority of our certificate",
    "CERTIFICATE_EXPIRED": "our certificate has expired",
    "WRONG_VERSION_NUMBER": "something else than vesper listens there",
    "SSL_ERROR_SSL": "it or we cannot prove who we are; `vesper preflight` says more",
}


def _names_of(facts: dict[str, list[bytes]]) -> list[str]:
    names = facts.get("x509_subject_alternative_name", []) or facts.get("x509_common_name", [])
    return [name.decode(errors="replace") for name in names]


def _short(error: BaseException) -> str:
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
