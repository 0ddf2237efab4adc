"""Private set intersection between two parties (DH-PSI), by `openmined.psi`, an extra.

    label   H(y)^b for its ids                       -> data
    data    H(x)^a for its ids, sorted, and H(y)^ab  -> label
    label   removes b and compares: its ids that the data party has too

Each side sees the other's ids only as points of P-256 under a key that it does not have and that is
new each time; both learn how many ids the other has. This protects against a party that is curious
but follows the protocol. Points are compared exactly: there are no false matches.
"""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from typing import ParamSpec, TypeVar

from vesper.errors import InputError, RemoteProtocolError
from vesper.progress import Progress, no_progress
from vesper.transport.channel import MAX_FRAME_BYTES, Channel

BLOCK = 1 << 13
"""Ids between two progress reports."""

HEAD_BYTES, BYTES_PER_ID = 1 << 10, 40
"""A hidden id is a compressed point of 33 bytes, with its length."""

T = TypeVar("T")
P = ParamSpec("P")


def refuse_without_library() -> None:
    """Refuse to continue without the extra, before the peer is contacted.

    Raises:
        InputError: it is not installed.
    """
    if importlib.util.find_spec("private_set_intersection") is None:
        raise InputError(
            "--private: expected the extra 'psi' at both parties, not installed here; "
            "pip install 'vesper[psi]'"
        )


def intersect_as_label(
    channel: Channel, ids: Sequence[str], *, num_nodes: int, progress: Progress = no_progress
) -> list[int]:
    """Find which of this side's ids the data party has; the data party learns nothing yet.

    Args:
        channel: channel to the data party.
        ids: distinct ids of this side, at least one.
        num_nodes: number of ids that the data party has announced.
        progress: receives progress reports.

    Returns:
        Their positions in `ids`, ascending.
    """
    import private_set_intersection.python as psi

    client = psi.client.CreateWithNewKey(True)
    request = psi.Request(reveal_intersection=True)
    for block in _blocks(ids, "hiding ids", progress):
        request.encrypted_elements.extend(client.CreateRequest(block).encrypted_elements)
    channel.send(request.SerializeToString())
    setup, response = psi.ServerSetup(), psi.Response()
    _blame_peer(setup.ParseFromString, channel.receive(_largest(num_nodes)))
    _blame_peer(response.ParseFromString, channel.receive(_largest(len(ids))))
    if len(response.encrypted_elements) != len(ids):
        raise RemoteProtocolError(
            f"the peer answered for {len(response.encrypted_elements)} ids, expected {len(ids)}"
        )
    common = sorted(_blame_peer(client.GetIntersection, setup, response))
    if len(set(common)) != len(common) or (common and not 0 <= common[0] <= common[-1] < len(ids)):
        raise RemoteProtocolError("the peer sent an invalid intersection")
    return common


def intersect_as_data(
    channel: Channel, ids: Sequence[str], *, num_labels: int, progress: Progress = no_progress
) -> None:
    """Help the label party to find which of its ids this side has.

    Args:
        channel: channel to the label party.
        ids: distinct ids of this side.
        num_labels: number of ids that the label party has announced.
        progress: receives progress reports.
    """
    import private_set_intersection.python as psi

    server = psi.server.CreateWithNewKey(True)
    hidden: list[bytes] = []
    for own in _blocks(ids, "hiding ids", progress):
        part = server.CreateSetupMessage(0.0, num_labels, own, psi.DataStructure.RAW)
        hidden += part.raw.encrypted_elements
    setup = psi.ServerSetup()
    setup.raw.encrypted_elements.extend(sorted(hidden))  # an order that reveals nothing about ours
    request = psi.Request()
    _blame_peer(request.ParseFromString, channel.receive(_largest(num_labels)))
    if len(request.encrypted_elements) != num_labels:
        raise RemoteProtocolError(
            f"the peer sent {len(request.encrypted_elements)} ids, announced {num_labels}"
        )
    response = psi.Response()
    for block in _blocks(request.encrypted_elements, "answering", progress):
        part_request = psi.Request(reveal_intersection=True, encrypted_elements=block)
        part_response = _blame_peer(server.ProcessRequest, part_request)
        response.encrypted_elements.extend(part_response.encrypted_elements)
    channel.send(setup.SerializeToString())
    channel.send(response.SerializeToString())


def _largest(count: int) -> int:
    """Largest frame with so many hidden ids."""
    return min(HEAD_BYTES + count * BYTES_PER_ID, MAX_FRAME_BYTES)


def _blocks(items: Sequence[T], task: str, progress: Progress) -> Iterator[list[T]]:
    for start in range(0, len(items), BLOCK):
        yield list(items[start : start + BLOCK])
        progress(task, min(start + BLOCK, len(items)), len(items))


def _blame_peer(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call the library with what the peer sent; any error is the peer's fault."""
    try:
        return function(*args, **kwargs)
    except Exception as error:  # the library and protobuf raise kinds of their own
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise RemoteProtocolError(
            f"the peer sent bytes that are not hidden ids ({why[:100]})"
        ) from None
