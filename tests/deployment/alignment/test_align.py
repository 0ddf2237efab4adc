"""Alignment over a channel: the same ids in the same order at both sides, or a clear refusal."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.deployment.alignment import align as align_module
from vesper.deployment.alignment.align import (
    DIGEST_BYTES,
    Alignment,
    AlignmentHello,
    align_data,
    align_labels,
)
from vesper.errors import InputError, PeerError, RemoteProtocolError
from vesper.graph.ids import Ids
from vesper.transport.memory import MemoryChannel

if TYPE_CHECKING:
    from tests.deployment.alignment.conftest import Hostile, RunBoth

LABELS = Path("labels.parquet")
Align = Callable[[Sequence[int | str], Sequence[int | str]], list[Any]]


def ids_of(values: Sequence[int | str]) -> Ids:
    kind = pa.int64() if values and isinstance(values[0], int) else pa.large_string()
    return Ids(pa.array(values, type=kind))


@pytest.fixture(scope="session")
def align(run_both: "RunBoth") -> Align:
    """Align these nodes and labels; return the result of each side."""
    return lambda nodes, labels: run_both(
        lambda end: align_data(end, ids_of(nodes)),
        lambda end: align_labels(end, ids_of(labels), path=LABELS),
    )


def test_labels_of_some_nodes_whatever_the_order(align: Align) -> None:
    data, label = align([5, 10, 9, 100, 7], [100, 9, 5])
    assert data.ids.to_pylist() == label.ids.to_pylist() == ["100", "5", "9"]
    assert data.proof == label.proof
    again, _ = align([5, 10, 9, 100, 7], [100, 9, 5])
    assert again.proof != data.proof  # a new key each time


def test_numbers_match_text(align: Align) -> None:
    data, label = align(["7", "8", "x"], [8, 7])
    assert data.ids.to_pylist() == label.ids.to_pylist() == ["7", "8"]


def test_unknown_ids_are_named_to_their_owner_only(align: Align) -> None:
    data, label = align([1, 2, 3], [2, 77, 3, 78, 79, 80])
    assert isinstance(label, InputError)
    assert str(label).startswith(
        "labels.parquet, column id: 4 of 6 ids are unknown to the data party (first 3: 77, 78, 79)"
    )
    assert isinstance(data, InputError)
    assert str(data).startswith("4 of 6 ids of the label party are not nodes here")
    assert "77" not in str(data)


@given(st.sets(st.text(max_size=5), min_size=1, max_size=12), st.randoms())
def test_any_text_is_an_id(align: Align, names: set[str], random: Any) -> None:
    nodes = sorted(names)
    labels = random.sample(nodes, random.randint(1, len(nodes)))
    data, label = align(nodes, labels)
    expected = sorted(labels, key=str.encode)
    assert data.ids.to_pylist() == label.ids.to_pylist() == expected


def test_many_ids_cross_in_blocks(align: Align, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(align_module, "BLOCK", 7)
    for count in (7, 20, 21):
        data, label = align(range(50), range(count))
        assert len(data.ids) == len(label.ids) == count


def test_only_one_side_is_private(run_both: "RunBoth") -> None:
    both = run_both(
        lambda end: align_data(end, ids_of([1]), private=True),
        lambda end: align_labels(end, ids_of([1]), path=LABELS),
    )
    assert "this side aligns with --private and the peer without" in str(both[0])
    assert "the peer aligns with --private and this side without" in str(both[1])


OPENING = AlignmentHello(nonce=bytes(32), count=2, private=False).to_bytes()
TWO = (2).to_bytes(8, "little")
DIFFERENT = bytes(DIGEST_BYTES) + b"\1" * DIGEST_BYTES


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([b""], "does not align ids; start `vesper align`"),
        ([b"VSPG1" + OPENING[5:]], "does not align ids"),
        ([OPENING + b"x"], "does not align ids"),
        ([OPENING[:6] + bytes(8) + bytes(32)], "announced 0 ids"),
        ([OPENING[:6] + b"\xff" * 8 + bytes(32)], "announced 18446744073709551615 ids"),
        ([OPENING[:5] + b"\2" + OPENING[6:]], "announced"),
        ([OPENING, b"\3"], "a count of at most 2 ids"),
        ([OPENING, (3).to_bytes(8, "little")], "a count of at most 2 ids"),
        ([OPENING, (1).to_bytes(8, "little"), bytes(DIGEST_BYTES)], "sent 1 ids, announced 2"),
        ([OPENING, TWO, bytes(DIGEST_BYTES)], "a block of ids of the wrong size"),
        ([OPENING, TWO, DIFFERENT + b"x"], "a block of ids of the wrong size"),
        ([OPENING, TWO, bytes(2 * DIGEST_BYTES)], "an id twice"),
    ],
)
def test_a_hostile_label_party(
    run_both: "RunBoth", hostile: "Hostile", frames: list[bytes], message: str
) -> None:
    data, _ = run_both(lambda end: align_data(end, ids_of([1, 2, 3])), hostile(*frames))
    assert isinstance(data, RemoteProtocolError)
    assert message in str(data)


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([OPENING, b"x"], "invalid positions"),
        ([OPENING, TWO], "invalid positions"),
        ([OPENING, bytes(16)], "invalid positions"),
        ([OPENING, (-1).to_bytes(8, "little", signed=True)], "invalid positions"),
        ([OPENING, bytes(24)], "more than the 16 bytes"),
        ([OPENING, b"", b"proof"], "a proof of 5 bytes, expected 32"),
        ([OPENING, b"", bytes(32)], "proof does not match"),
    ],
)
def test_a_hostile_data_party(
    run_both: "RunBoth", hostile: "Hostile", frames: list[bytes], message: str
) -> None:
    _, label = run_both(
        hostile(*frames), lambda end: align_labels(end, ids_of([1, 2]), path=LABELS)
    )
    assert isinstance(label, RemoteProtocolError)
    assert message in str(label)


@given(st.lists(st.binary(max_size=80), max_size=4))
def test_any_bytes_end_in_one_error(
    run_both: "RunBoth", hostile: "Hostile", frames: list[bytes]
) -> None:
    data, _ = run_both(lambda end: align_data(end, ids_of([1, 2])), hostile(OPENING, *frames, b""))
    assert isinstance(data, PeerError | InputError)
    assert not isinstance(data, Alignment)


def test_our_own_frames_sent_back_prove_nothing(run_both: "RunBoth") -> None:
    def mirror(end: MemoryChannel) -> None:
        try:
            while True:
                end.send(end.receive())
        except PeerError:
            return

    data, _ = run_both(lambda end: align_data(end, ids_of([1, 2])), mirror)
    assert isinstance(data, RemoteProtocolError)
    assert "our own nonce" in str(data)
