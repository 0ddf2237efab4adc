"""Labels behind their door: a label of an id has one response for good, and is charged first."""

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from vesper.errors import BudgetError, InputError, VesperError
from vesper.mechanism.label_door import LabelDoor, OwnWords, fingerprint_of
from vesper.mechanism.label_response import respond
from vesper.mechanism.noise import NoiseSource
from vesper.privacy.account import accounts
from vesper.privacy.ledger import Ledger
from vesper.privacy.randomized_response import transition
from vesper.privacy.relation import LabelRelation

IDS = [f"n{k}" for k in range(400)]
LABELS = np.arange(400) % 3

Open = Callable[..., LabelDoor]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)


@pytest.fixture
def open_door(tmp_path: Path, ledger: Ledger) -> Open:
    def make(
        ids: Sequence[str] = IDS,
        labels: object = LABELS,
        epsilon: float = 1.0,
        num_classes: int = 3,
        ledger: Ledger = ledger,
    ) -> LabelDoor:
        return LabelDoor(
            ids,
            np.asarray(labels),
            num_classes=num_classes,
            epsilon=epsilon,
            ledger=ledger,
            noise=NoiseSource.from_os(),
            shown=tmp_path / "shown",
        )

    return make


def charges(ledger: Ledger) -> int:
    return sum(entry.cost > 0 for entry in ledger.entries())


def test_the_same_whatever_the_order_and_however_often(open_door: Open, ledger: Ledger) -> None:
    first = open_door().responses()
    assert charges(ledger) == 1
    keep = np.e / (np.e + 2)
    assert abs((first == LABELS).mean() - keep) < 0.15  # six standard deviations
    assert np.array_equal(open_door().responses(), first)
    turned = open_door(IDS[::-1], LABELS[::-1]).responses()
    assert np.array_equal(turned[::-1], first)
    assert charges(ledger) == 1
    (balance,) = accounts(ledger)
    assert balance.spent_epsilon() == 1.0
    assert balance.relation == LabelRelation()


def test_tables_that_lack_an_id_tell_nothing_more(open_door: Open, ledger: Ledger) -> None:
    first = open_door().responses()
    for gone in range(0, 400, 20):  # an alignment that loses a node each time
        rows = np.delete(np.arange(400), gone)
        again = open_door([IDS[row] for row in rows], LABELS[rows]).responses()
        assert np.array_equal(again, first[rows])
    more = open_door([*IDS, "new"], [*LABELS, 2]).responses()
    assert np.array_equal(more[:-1], first)
    assert charges(ledger) == len(accounts(ledger)) == 1


def test_another_label_of_an_id_is_refused(open_door: Open, ledger: Ledger) -> None:
    open_door().responses()
    changed = LABELS.copy()
    changed[7] = 2
    with pytest.raises(InputError, match="1 ids have another label .* id n7"):
        open_door(labels=changed).responses()
    rows = np.delete(np.arange(400), 7)
    open_door([IDS[row] for row in rows], changed[rows]).responses()
    assert charges(ledger) == 1


def test_another_number_of_classes_has_no_budget(open_door: Open, ledger: Ledger) -> None:
    open_door().responses()
    with pytest.raises(BudgetError, match="need a ledger of their own"):
        open_door(num_classes=4).responses()
    assert charges(ledger) == 1


def test_labels_have_one_budget(open_door: Open, ledger: Ledger) -> None:
    open_door().responses()
    with pytest.raises(InputError, match="budget of epsilon 1"):
        open_door(epsilon=2.0)
    assert charges(ledger) == 1


def test_an_older_copy_of_the_ledger_draws_nothing_anew(
    open_door: Open, ledger: Ledger, tmp_path: Path
) -> None:
    older = {path: path.read_bytes() for path in tmp_path.glob("ledger.sqlite*")}
    first = open_door().responses()
    ledger.close()
    for path, content in older.items():
        path.write_bytes(content)
    with closing(Ledger(ledger.path, clock=lambda: 0.0)) as copy:
        assert np.array_equal(open_door(ledger=copy).responses(), first)
        assert charges(copy) == 1


def test_what_was_shown_cannot_be_read(open_door: Open, tmp_path: Path) -> None:
    open_door().responses()
    (file,) = (tmp_path / "shown").iterdir()
    file.write_bytes(b"gone")
    with pytest.raises(VesperError, match="restore it"):
        open_door(IDS[1:], LABELS[1:]).responses()


def test_words_follow_the_claimed_channel_over_keys_and_over_ids() -> None:
    """Whose randomness is the key, or the id: the law of the response is that of LABEL-RR."""
    chances = transition(epsilon=1.0, num_classes=3)[1]
    drawn = 30_000
    one = np.ones(1, dtype=np.int64)
    by_key = [
        respond(
            one,
            epsilon=1.0,
            num_classes=3,
            words=OwnWords(k.to_bytes(32, "little"), ["n"], one, "3"),
        )[0]
        for k in range(drawn)
    ]
    ids, ones = [f"n{k}" for k in range(drawn)], np.ones(drawn, dtype=np.int64)
    by_id = respond(
        ones, epsilon=1.0, num_classes=3, words=OwnWords(b"k" * 32, ids, ones, "3")
    ).tolist()
    for seen in (by_key, by_id):
        counts = np.bincount(seen, minlength=3)
        assert stats.chisquare(counts, chances / chances.sum() * drawn).pvalue > 1e-3


def test_words_belong_to_key_question_id_label_and_turn() -> None:
    ids, labels, rows = ["a", "b"], np.array([0, 1]), np.array([0, 1])
    words = OwnWords(b"k" * 32, ids, labels, "3 1.0")
    first, second = words(rows), words(rows)
    others = [
        OwnWords(b"l" * 32, ids, labels, "3 1.0")(rows),
        OwnWords(b"k" * 32, ids, labels, "3 2.0")(rows),
        OwnWords(b"k" * 32, ["c", "d"], labels, "3 1.0")(rows),
        OwnWords(b"k" * 32, ids, labels + 1, "3 1.0")(rows),
    ]
    everything = np.concatenate([first, second, *others])
    assert len(set(everything.tolist())) == 12
    again = OwnWords(b"k" * 32, ["b", "a"], labels[::-1], "3 1.0")
    assert again(np.array([1, 0])).tolist() == first.tolist()


def test_the_name_needs_the_key_and_not_the_order() -> None:
    ids, labels = ["a", "b"], np.array([0, 1])
    name = fingerprint_of(ids, labels, 2, key=b"k" * 32)
    assert name == fingerprint_of(["b", "a"], labels[::-1], 2, key=b"k" * 32)
    assert name != fingerprint_of(ids, labels, 2, key=b"l" * 32)
    assert name != fingerprint_of(["a", "c"], labels, 2, key=b"k" * 32)
    assert name != fingerprint_of(ids, labels[::-1], 2, key=b"k" * 32)
    assert name != fingerprint_of(["ab", ""], labels, 2, key=b"k" * 32)
