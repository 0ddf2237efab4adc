"""Frames over gRPC with mutual TLS: one bidirectional stream, both ends authenticated by name.

The listening end accepts one peer, whose certificate must carry the expected name. A new connection
from that peer replaces an old one, which the network may have cut unnoticed. The connecting end
checks the name of the listener in the same way. Nothing is compressed.

Both ends ask for their identity again at every handshake, so that new certificates are used from
the next connection on.
"""

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import grpc

from vesper.errors import InputError, PeerLostError, VesperError
from vesper.transport.refusal import Refusal, problem_of
from vesper.transport.stream import CHUNK, StreamChannel, Waiting, ignore_waiting


@dataclass(frozen=True)
class Identity:
    """PEM texts for mutual TLS: own certificate and key, and the authority both sides trust."""

    certificate: bytes
    key: bytes = field(repr=False)
    authority: bytes


IdentitySource = Callable[[], Identity]
"""Gives the identity to use now; raises a `VesperError` where there is none at the moment."""

Admission = Callable[[bytes], Refusal | None]
"""Checks the certificate (PEM) of a peer that has proved to have it; None admits the peer."""


def admit_everyone(certificate: bytes) -> None:
    """Admit every certificate: the default for `Admission`."""


SERVICE, METHOD = "vesper.Exchange", "Frames"
OPTIONS = [
    ("grpc.max_receive_message_length", 2 * CHUNK),
    ("grpc.max_send_message_length", 2 * CHUNK),
    ("grpc.so_reuseport", 0),
    ("grpc.http2.max_frame_size", 1 << 20),
]
ACCEPTED_HEADER = ("vesper-welcome", "1")
"""Sent to the connecting end once it is accepted."""
RETRY_SECONDS = 0.5
"""Seconds between two attempts to reach the peer."""


class Listener:
    """Waits at an address for connections from one peer.

    Args:
        address: `host:port`; port 0 takes a free one.
        identity: gives own certificate and key, and the trusted authority.
        peer: name that the peer's certificate must carry.
        patience: seconds of silence after which the peer of an accepted channel counts as gone.
        waiting: receives the seconds waited so far, from time to time, while waiting for the peer.
        admit: checks the certificate of a peer of the right name.

    Raises:
        InputError: it cannot listen at the address, or the identity cannot be used.
    """

    def __init__(
        self,
        address: str,
        *,
        identity: IdentitySource,
        peer: str,
        patience: float,
        waiting: Waiting = ignore_waiting,
        admit: Admission = admit_everyone,
    ) -> None:
        self._peer, self._patience, self._waiting = peer, patience, waiting
        self._identity, self._admit = identity, admit
        self._arrivals: queue.SimpleQueue[StreamChannel] = queue.SimpleQueue()
        self._current: StreamChannel | None = None
        self._is_closed = False
        self.last_refused = ""
        """Who was refused last, for this side's messages."""
        self._server = grpc.server(ThreadPoolExecutor(max_workers=8), options=OPTIONS)
        handler: Any = grpc.stream_stream_rpc_method_handler(self._handle)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),)
        )
        first = identity()
        try:
            self.port = self._server.add_secure_port(address, self._credentials(first))
        except (RuntimeError, ValueError) as error:
            raise InputError(
                f"listen: cannot listen at {address} ({_short(error)}); is the port in use?"
            ) from None
        self._server.start()

    def accept(self, limit: float | None = None) -> StreamChannel:
        """Wait for the peer, forever or at most `limit` seconds.

        Raises:
            PeerLostError: the peer did not connect within the limit.
        """
        started = monotonic()
        while True:
            try:
                channel = self._arrivals.get(timeout=RETRY_SECONDS)
            except queue.Empty:
                waited = monotonic() - started
                self._waiting(waited)
                if limit is not None and waited > limit:
                    raise PeerLostError(
                        f"{self._peer} has not connected for {waited:.0f} s{self._refusals()}"
                    ) from None
                continue
            while not self._arrivals.empty():  # only the newest connection is alive
                channel = self._arrivals.get()
            return channel

    def close(self) -> None:
        """Stop listening; abandon a connection that was accepted last."""
        self._is_closed = True
        if self._current is not None:
            self._current.abandon()
        self._server.stop(grace=None)

    def _credentials(self, first: Identity) -> Any:
        """Credentials that are renewed at every handshake."""

        def renewed() -> Any:
            nonlocal first
            try:
                newest = self._identity()
            except VesperError:  # the old one may still do; whoever gives identities reports it
                return None
            first, is_new = newest, newest != first
            return _server_configuration(newest) if is_new else None

        initial = _server_configuration(first)
        return grpc.dynamic_ssl_server_credentials(initial, renewed, True)

    def _refusals(self) -> str:
        return (
            f"; {self.last_refused} tried to connect and was refused" if self.last_refused else ""
        )

    def _handle(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        refusal = self._refusal_of(context)
        if refusal is Refusal.FAILED:
            context.abort(grpc.StatusCode.UNAVAILABLE, str(refusal))
        if refusal is not None:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, str(refusal))
        context.send_initial_metadata((ACCEPTED_HEADER,))
        channel = StreamChannel(
            peer=self._peer,
            patience=self._patience,
            cancel=context.cancel,
            waiting=self._waiting,
        )
        if self._current is not None:
            self._current.end_input(PeerLostError(f"{self._peer} has reconnected"))
        self._current = channel
        self._arrivals.put(channel)
        if self._is_closed:
            channel.abandon()  # or this thread would keep the process alive
        threading.Thread(target=_read, args=(channel, requests, self._peer), daemon=True).start()
        yield from channel.outgoing_chunks()

    def _refusal_of(self, context: Any) -> Refusal | None:
        try:
            facts = context.auth_context()
            names = _names_of(facts)
            shown = f"'{', '.join(names)}'"
            refusal = Refusal.OTHER_NAME
            if self._peer in names:
                found = self._admit(b"".join(facts.get("x509_pem_cert", [])))
                if found is None:
                    return None
                refusal, shown = found, f"{shown} ({found})"
        except Exception as error:  # grpc would send its text to whoever connects
            refusal, shown = Refusal.FAILED, f"somebody ({_short(error)})"
        self.last_refused = shown
        return refusal


def connect(
    address: str,
    *,
    identity: IdentitySource,
    peer: str,
    patience: float,
    waiting: Waiting = ignore_waiting,
    limit: float | None = None,
) -> StreamChannel:
    """Connect to the peer that listens at `address`, trying forever or at most `limit` seconds.

    Raises:
        PeerError: the peer is not the expected one, or refuses us; retrying cannot help.
        PeerLostError: nobody answered within the limit.
    """
    started = monotonic()
    while True:
        try:
            return _attempt(
                address, identity=identity, peer=peer, patience=patience, waiting=waiting
            )
        except PeerLostError as error:
            waited = monotonic() - started
            waiting(waited)
            if limit is not None and waited > limit:
                raise PeerLostError(f"{peer} at {address}: {error}") from None
            threading.Event().wait(RETRY_SECONDS)


def _attempt(
    address: str, *, identity: IdentitySource, peer: str, patience: float, waiting: Waiting
) -> StreamChannel:
    own = identity()
    credentials = grpc.ssl_channel_credentials(own.authority, own.key, own.certificate)
    options = [*OPTIONS, ("grpc.ssl_target_name_override", peer), ("grpc.enable_retries", 0)]
    wire = grpc.secure_channel(address, credentials, options=options)
    channel = StreamChannel(peer=peer, patience=patience, cancel=wire.close, waiting=waiting)
    open_stream: Any = wire.stream_stream(f"/{SERVICE}/{METHOD}")
    call = open_stream(channel.outgoing_chunks())
    opened: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()

    def watch() -> None:
        try:
            accepted = ACCEPTED_HEADER in [tuple(pair) for pair in call.initial_metadata()]
            problem = None if accepted else problem_of(call, peer)  # waits for the reason
        except grpc.RpcError as error:
            problem = problem_of(error, peer)
        opened.put(problem)

    threading.Thread(target=watch, daemon=True).start()
    try:
        problem = opened.get(timeout=patience)
    except queue.Empty:
        problem = PeerLostError(f"{peer} did not answer within {patience:g} s")
    if problem is not None:
        channel.end_input(problem)  # nothing will arrive, so closing need not wait
        channel.close()
        raise problem
    threading.Thread(target=_read, args=(channel, call, peer), daemon=True).start()
    return channel


def _read(channel: StreamChannel, chunks: Iterator[bytes], peer: str) -> None:
    try:
        for chunk in chunks:
            channel.receive_chunk(chunk)
        channel.end_input(PeerLostError(f"the connection to {peer} was lost"))
    except grpc.RpcError as error:  # whatever it is: this connection was open before
        channel.end_input(PeerLostError(str(problem_of(error, peer))))
    except Exception as error:  # the listening end gets a plain exception when a stream breaks
        channel.end_input(PeerLostError(f"the connection to {peer} broke ({_short(error)})"))


def _server_configuration(identity: Identity) -> Any:
    return grpc.ssl_server_certificate_configuration(
        [(identity.key, identity.certificate)], identity.authority
    )


def _names_of(facts: dict[str, list[bytes]]) -> list[str]:
    names = facts.get("x509_subject_alternative_name", []) or facts.get("x509_common_name", [])
    return [name.decode(errors="replace") for name in names]


def _short(error: BaseException) -> str:
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
