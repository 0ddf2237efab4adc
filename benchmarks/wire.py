"""A step on the wire: round trips over mutual TLS, compared with raw TLS sockets, two processes.

    python -m benchmarks.wire            print the table; --small for a quick trial
    python -m benchmarks.wire --write    and write benchmarks/wire.md

Contenders take turns round trip by round trip, so that other load on the machine affects all of
them alike; read the ratios, not the milliseconds.
"""

import multiprocessing
import os
import resource
import socket
import ssl
import struct
import tempfile
from datetime import UTC, datetime
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.page import command, log, machine, options, publish
from benchmarks.timing import Timing
from cryptography.hazmat.primitives.serialization import Encoding

from vesper.deployment.identity.authority import make_authority, sign
from vesper.deployment.identity.credentials import read_credentials
from vesper.deployment.identity.request import make_request
from vesper.transport.channel import MAX_FRAME_BYTES, Channel, frame_above_limit
from vesper.transport.close_reason import CloseReason
from vesper.transport.durable_channel import DurableChannel
from vesper.transport.grpc_channel import Identity, Listener, connect

SIZES = {"512 KiB": 1 << 19, "2 MiB": 1 << 21}
TARGETS = {"512 KiB": 1.3, "2 MiB": 2.0}
RAW = "raw TLS sockets"
GRPC = "gRPC stream (the connection)"
DURABLE = "durable channel (log, transcript)"
_LENGTH = struct.Struct("<I")


class RawChannel:
    """Length and content over a TLS socket: the fastest possible channel."""

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self._socket = sock

    def send(self, frame: bytes) -> None:
        self._socket.sendall(_LENGTH.pack(len(frame)) + frame)

    def receive(self, limit: int = MAX_FRAME_BYTES) -> bytes:
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        if length > limit:
            raise frame_above_limit(limit, "the peer")
        return self._read(length)

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        self._socket.close()

    def _read(self, length: int) -> bytes:
        buffer = bytearray(length)
        view, at = memoryview(buffer), 0
        while at < length:
            count = self._socket.recv_into(view[at:])
            if count == 0:
                raise ConnectionError("closed")
            at += count
        return bytes(buffer)


def certificates(folder: Path) -> None:
    now = datetime.now(UTC)
    authority = make_authority(folder, name="benchmark", now=now)
    for name in ("data", "label"):
        request = make_request(name, [], folder)[2]
        certificate = sign(authority, request, days=1, now=now).public_bytes(Encoding.PEM)
        (folder / f"{name}.pem").write_bytes(certificate)


def context(folder: Path, name: str) -> ssl.SSLContext:
    side = ssl.PROTOCOL_TLS_SERVER if name == "label" else ssl.PROTOCOL_TLS_CLIENT
    tls = ssl.SSLContext(side)
    tls.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    tls.load_verify_locations(folder / "authority.pem")
    tls.verify_mode = ssl.CERT_REQUIRED
    return tls


def identity_in(folder: Path, name: str) -> Identity:
    return read_credentials(
        certificate=folder / f"{name}.pem",
        key=folder / f"{name}.key",
        authority=folder / "authority.pem",
        name=name,
        now=datetime.now(UTC),
    ).identity


def durable(channel: Channel, folder: Path, name: str) -> DurableChannel:
    (folder / name).mkdir()
    directions = ("data>label", "label>data")
    return DurableChannel(
        lambda limit: channel,
        folder / name,
        names_session=name == "data",
        directions=directions if name == "data" else directions[::-1],
        reconnects=False,
    )


def answer(folder: Path, pipe: Connection) -> None:
    """The label side, in a separate process: echoes one frame per name from the pipe."""
    plain = socket.create_server(("127.0.0.1", 0))
    identity = identity_in(folder, "label")
    listeners = [
        Listener("127.0.0.1:0", identity=lambda: identity, peer="data", patience=30)
        for _ in range(2)
    ]
    pipe.send((plain.getsockname()[1], *(listener.port for listener in listeners)))
    raw = context(folder, "label").wrap_socket(plain.accept()[0], server_side=True)
    streams = [listener.accept() for listener in listeners]
    ends: dict[str, Channel] = {RAW: RawChannel(raw), GRPC: streams[0]}
    ends[DURABLE] = durable(streams[1], folder, "label")
    while (name := pipe.recv()) is not None:
        before = resource.getrusage(resource.RUSAGE_SELF)
        ends[name].send(ends[name].receive())
        after = resource.getrusage(resource.RUSAGE_SELF)
        pipe.send(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    for listener in listeners:
        listener.close()


def round_trip(end: Channel, frame: bytes) -> None:
    end.send(frame)
    end.receive()


def measure(rounds: int) -> dict[str, dict[str, Timing]]:
    timings: dict[str, dict[str, Timing]] = {}
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        certificates(folder)
        pipe, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(target=answer, args=(folder, theirs))
        process.start()
        ends = connected(folder, *pipe.recv())
        for label, size in SIZES.items():
            timings[label] = {name: Timing() for name in ends}
            frame = os.urandom(size)
            for turn in range(rounds + 3):
                for name, end in ends.items():
                    timed = Timing() if turn < 3 else timings[label][name]
                    pipe.send(name)
                    timed.clock(partial(round_trip, end, frame))
                    timed.cpu[-1] += pipe.recv()
            log(f"{label}: {rounds} rounds")
        pipe.send(None)
        for end in ends.values():
            end.close()
        process.join(10)
        process.kill()
    return timings


def connected(folder: Path, raw_port: int, *grpc_ports: int) -> dict[str, Channel]:
    sock = socket.create_connection(("127.0.0.1", raw_port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    raw = context(folder, "data").wrap_socket(sock, server_hostname="label")
    identity = identity_in(folder, "data")

    streams = [
        connect(f"127.0.0.1:{port}", identity=lambda: identity, peer="label", patience=30)
        for port in grpc_ports
    ]
    return {RAW: RawChannel(raw), GRPC: streams[0], DURABLE: durable(streams[1], folder, "data")}


def report(rounds: int, command_line: str) -> str:
    rows = []
    for size, timed in measure(rounds).items():
        raw = timed[RAW]
        for name, one in timed.items():
            target = f"{TARGETS[size]:g} x" if name == GRPC else ""
            rows.append(
                f"| {size} | {name} | {one.median() * 1e3:.2f} | {one.median() / raw.median():.2f} "
                f"x | {one.best() * 1e3:.2f} | {one.best() / raw.best():.2f} x | {target} "
                f"| {one.median_cpu() * 1e3:.2f} | {one.median_cpu() / raw.median_cpu():.2f} x |"
            )
    return "\n".join(
        [
            "# One step on the wire",
            "",
            f"Command: `{command_line}`. Machine: {machine()}, load {os.getloadavg()[0]:.1f}.",
            f"Mutual TLS on loopback between two processes, one frame each way, {rounds} "
            "rounds in turns, milliseconds; CPU of both processes together.",
            "",
            "| frame | channel | p50 | of raw | best | of raw | target | CPU | of raw |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            *rows,
            "",
            "On both sides, the durable channel writes every frame to its log before the frame is "
            "sent or acted upon and adds it to the transcript, so that it survives a crash.",
            "",
        ]
    )


def main() -> None:
    parser = options(__doc__, small="few rounds")
    parser.add_argument("--rounds", type=int, default=300, help="round trips of each contender")
    arguments = parser.parse_args()
    text = report(20 if arguments.small else arguments.rounds, command(__file__))
    publish(text, __file__, write=arguments.write)


if __name__ == "__main__":
    main()
