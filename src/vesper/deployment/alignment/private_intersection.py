"""Private set intersection between two parties (DH-PSI), by `openmined.psi`, an extra.

    label   H(y)^b for its ids                       -> data
    data    H(x)^a for its ids, sorted, and H(y)^ab  -> label
    label   takes b off and compares: its ids that the data party has too

Each side sees the other's ids only as points of P-256 under a key it has not got, made anew each
time; both learn how many ids the other has. It holds against a party that follows the protocol and
is curious. Points are compared exactly: nothing is found by chance.
"""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from typing import ParamSpec, TypeVar

from vesper.errors import InputError, RemoteProtocolError
from vesper.progress import Progress, no_progress
from vesper.transport.channel import Channel

BLOCK = 1 << 13
"""Ids between two reports of progress."""

T = TypeVar("T")
P = ParamSpec("P")


def refuse_without_library() -> None:
    """Refuse, before the peer is asked, to go on without the extra.

    Raises:
        InputError: it is not installed.
    """
    if importlib.util.find_spec("private_set_intersection") is None:
        raise InputError(
            "--private: expected the extra 'psi' at both parties, not installed here; "
            "pip install 'vesper[psi]'"
        )


def intersect_as_label(
    channel: Channel, ids: Sequence[str], *, progress: Progress = no_progress
) -> list[int]:
    """Find which of this side's ids the data party has; the data party learns nothing yet.

    Args:
        channel: to the data party.
        ids: distinct ids of this side, at least one.
        progress: is told how far it is.

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
    _blame_peer(setup.ParseFromString, channel.receive())
    _blame_peer(response.ParseFromString, channel.receive())
    if len(response.encrypted_elements) != len(ids):
        raise RemoteProtocolError(
            f"the peer answered for {len(response.encrypted_elements)} ids, expected {len(ids)}"
        )
    found = sorted(_blame_peer(client.GetIntersection, setup, response))
    if len(set(found)) != len(found) or (found and not 0 <= found[0] <= found[-1] < len(ids)):
        raise RemoteProtocolError("the peer sent an intersection that cannot be")
    return found


def intersect_as_data(
    channel: Channel, ids: Sequence[str], *, num_labels: int, progress: Progress = no_progress
) -> None:
    """Help the label party to find which of its ids this side has.

    Args:
        channel: to the label party.
        ids: distinct ids of this side.
        num_labels: how many ids the label party has announced.
        progress: is told how far it is.
    """
    import private_set_intersection.python as psi

    server = psi.server.CreateWithNewKey(True)
    hidden: list[bytes] = []
    for own in _blocks(ids, "hiding ids", progress):
        part = server.CreateSetupMessage(0.0, num_labels, own, psi.DataStructure.RAW)
        hidden += part.raw.encrypted_elements
    setup = psi.ServerSetup()
    setup.raw.encrypted_elements.extend(sorted(hidden))  # an order that tells nothing of ours
    request = psi.Request()
    _blame_peer(request.ParseFromString, channel.receive())
    if len(request.encrypted_elements) != num_labels:
        raise RemoteProtocolError(
            f"the peer asked about {len(request.encrypted_elements)} ids, announced {num_labels}"
        )
    response = psi.Response()
    for block in _blocks(request.encrypted_elements, "answering", progress):
        asked = psi.Request(reveal_intersection=True, encrypted_elements=block)
        answer = _blame_peer(server.ProcessRequest, asked)
        response.encrypted_elements.extend(answer.encrypted_elements)
    channel.send(setup.SerializeToString())
    channel.send(response.SerializeToString())


def _blocks(items: Sequence[T], task: str, progress: Progress) -> Iterator[list[T]]:
    for start in range(0, len(items), BLOCK):
        yield list(items[start : start + BLOCK])
        progress(task, min(start + BLOCK, len(items)), len(items))


def _blame_peer(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Let the library look at what the peer sent; whatever is wrong with it is the peer's fault."""
    try:
        return function(*args, **kwargs)
    except Exception as error:  # the library and protobuf raise kinds of their own
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise RemoteProtocolError(f"the peer sent bytes that hide no ids ({why[:100]})") from None
