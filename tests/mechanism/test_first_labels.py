"""Records of answered labels."""

from pathlib import Path

import numpy as np
import pytest

from vesper.mechanism import first_labels
from vesper.mechanism.first_labels import ANSWERED_KIND, RECORD_BYTES, FirstLabels, digest_texts
from vesper.privacy.ledger.store import Ledger

IDS = ["a", "b", "c", "d", "e"]
LABELS = np.array([0, 1, 1, 0, 1])
CLASSES = ("no", "yes")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)


def look_up(ledger: Ledger, ids: list[str], labels: object, *, account: str = "all") -> list[int]:
    records = FirstLabels(ledger, account=account, run="labels")
    with ledger.transaction():
        found: list[int] = records.look_up(ids, np.asarray(labels), CLASSES).tolist()
    return found


def records(ledger: Ledger) -> list[tuple[int, int, float]]:
    return [
        (entry.facts["labels"], len(entry.receivers), entry.cost)
        for entry in ledger.entries()
        if entry.facts["kind"] == ANSWERED_KIND
    ]


def test_the_first_label_of_an_id_stays(ledger: Ledger) -> None:
    assert look_up(ledger, IDS[:3], LABELS[:3]) == [0, 1, 1]
    assert look_up(ledger, IDS, 1 - LABELS) == [0, 1, 1, 1, 0]
    assert look_up(ledger, IDS, LABELS) == [0, 1, 1, 1, 0]
    assert look_up(ledger, IDS[::-1], np.zeros(5, dtype=np.int64)) == [0, 1, 1, 1, 0]


def test_one_entry_holds_all_new_labels(ledger: Ledger) -> None:
    for count in (2, 2, 5, 5):
        look_up(ledger, IDS[:count], LABELS[:count])
    look_up(ledger, [], LABELS[:0])
    assert records(ledger) == [(2, 2 * RECORD_BYTES, 0), (3, 3 * RECORD_BYTES, 0)]
    assert ledger.verify() is None


def test_very_many_labels_fill_several_entries(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_labels, "MOST_RECORDS", 2)
    look_up(ledger, IDS, LABELS)
    assert [line[0] for line in records(ledger)] == [2, 2, 1]
    assert look_up(ledger, IDS, 1 - LABELS) == LABELS.tolist()


def test_accounts_have_records_of_their_own(ledger: Ledger) -> None:
    look_up(ledger, IDS, LABELS)
    assert look_up(ledger, IDS, 1 - LABELS, account="another") == (1 - LABELS).tolist()


def test_records_reveal_neither_ids_nor_labels_without_the_key(
    ledger: Ledger, tmp_path: Path
) -> None:
    other = Ledger(tmp_path / "other.sqlite", clock=lambda: 0.0)
    for each in (ledger, other):
        look_up(each, IDS, LABELS)
    one, two = (list(each.entries())[-1].receivers for each in (ledger, other))
    parts = {blob[at : at + 16] for blob in (one, two) for at in range(0, len(blob), 16)}
    assert len(parts) == 4 * len(IDS)


def test_no_two_sequences_of_texts_have_one_digest() -> None:
    import hashlib

    base = hashlib.blake2b(key=b"k" * 32, digest_size=16)
    sequences = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc"), ()]
    assert len({digest_texts(base, *texts) for texts in sequences}) == len(sequences)
