"""The label of an id has one response forever, and is charged first."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from vesper.errors import BudgetError, InputError, VesperError
from vesper.mechanism.label_door import LABELS_ACCOUNT, KeyedWords, LabelDoor, respond
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.privacy.accounting.randomized_response import transition
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.graph_name import expect_graph_name
from vesper.privacy.ledger.store import Ledger
from vesper.privacy.relation import LabelRelation

IDS = [f"n{k}" for k in range(400)]
LABELS = np.arange(400) % 3
CLASSES = ("high", "low", "none")

Open = Callable[..., LabelDoor]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)


@pytest.fixture
def open_door(ledger: Ledger) -> Open:
    def make(
        ids: Sequence[str] = IDS,
        labels: object = LABELS,
        epsilon: float = 1.0,
        classes: Sequence[str] = CLASSES,
        ledger: Ledger = ledger,
        noise: NoiseSource | None = None,
        **more: Any,
    ) -> LabelDoor:
        return LabelDoor(
            ids,
            np.asarray(labels),
            classes=classes,
            epsilon=epsilon,
            ledger=ledger,
            noise=noise or NoiseSource.from_os(),
            **more,
        )

    return make


def charges(ledger: Ledger) -> int:
    return sum(entry.cost > 0 for entry in ledger.entries())


def test_responses_do_not_depend_on_order_or_repetition(open_door: Open, ledger: Ledger) -> None:
    first = open_door().responses()
    assert charges(ledger) == 1
    keep = np.e / (np.e + 2)
    assert abs((first == LABELS).mean() - keep) < 0.15  # six standard deviations
    assert np.array_equal(open_door().responses(), first)
    reversed_responses = open_door(IDS[::-1], LABELS[::-1]).responses()
    assert np.array_equal(reversed_responses[::-1], first)
    assert charges(ledger) == 1
    (balance,) = accounts(ledger)
    assert balance.spent_epsilon() == 1.0
    assert balance.relation == LabelRelation()


def test_tables_that_lack_an_id_reveal_nothing_more(open_door: Open, ledger: Ledger) -> None:
    first = open_door().responses()
    for missing in range(0, 400, 20):  # an alignment that loses a node each time
        rows = np.delete(np.arange(400), missing)
        again = open_door([IDS[row] for row in rows], LABELS[rows]).responses()
        assert np.array_equal(again, first[rows])
    more = open_door([*IDS, "new"], [*LABELS, 2]).responses()
    assert np.array_equal(more[:-1], first)
    assert charges(ledger) == len(accounts(ledger)) == 1


def test_the_first_response_stays_when_a_label_changes(open_door: Open, ledger: Ledger) -> None:
    """The data party cannot learn that a label has changed; the label party can."""
    first = open_door().responses()
    changed = LABELS.copy()
    stale_counts: list[int] = []
    changed[[7, 9]] = [2, 1]
    assert (changed != LABELS).sum() == 2
    again = open_door(labels=changed, check_stale=stale_counts.append).responses()
    assert np.array_equal(again, first)
    assert stale_counts == [2]
    rows = np.arange(5, 30)
    part = open_door([IDS[row] for row in rows], changed[rows]).responses()
    assert np.array_equal(part, first[rows])
    assert charges(ledger) == 1


def test_check_stale_may_refuse(open_door: Open, ledger: Ledger) -> None:
    def refuse(count: int) -> None:
        raise InputError(f"{count} have changed")

    open_door(IDS[:9], LABELS[:9]).responses()
    with pytest.raises(InputError, match="1 have changed"):
        open_door(IDS[8:12], [1, 0, 0, 0], check_stale=refuse).responses()
    stale_counts: list[int] = []  # the refused table was not recorded
    open_door(IDS[9:12], LABELS[9:12], check_stale=stale_counts.append).responses()
    assert stale_counts == []


def test_two_tables_at_once_get_the_same_responses(open_door: Open, tmp_path: Path) -> None:
    open_door([], []).responses()
    other = np.roll(LABELS, 1)

    def answer(labels: object) -> Any:
        with closing(Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)) as own:
            return open_door(labels=labels, ledger=own).responses()

    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(answer, (LABELS, other))
    assert np.array_equal(one, two)


def test_another_number_of_classes_has_no_budget(open_door: Open, ledger: Ledger) -> None:
    open_door().responses()
    with pytest.raises(BudgetError, match="a ledger of its own"):
        open_door(["new"], [0], classes=(*CLASSES, "more")).responses()
    assert charges(ledger) == 1
    stale_counts: list[int] = []
    # The refused label was not recorded.
    open_door(["new"], [2], check_stale=stale_counts.append).responses()
    assert stale_counts == []


def as_names(responses: NDArray[np.int64], classes: Sequence[str]) -> list[str]:
    return [classes[k] for k in responses]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_response_is_a_class_name_whatever_the_order_of_classes(
    open_door: Open, order: Sequence[int]
) -> None:
    """Two responses to one label, in two orders of the classes, would reveal it with certainty."""
    first = as_names(open_door().responses(), CLASSES)
    names = [CLASSES[k] for k in order]
    labels = np.array([names.index(CLASSES[label]) for label in LABELS])
    stale_counts: list[int] = []
    again = open_door(labels=labels, classes=names, check_stale=stale_counts.append).responses()
    assert as_names(again, names) == first
    assert stale_counts == []


@pytest.mark.parametrize("names", [("high", "weak", "none"), ("low", "none", "x"), ("a", "b", "c")])
def test_other_class_names_have_no_budget(
    open_door: Open, ledger: Ledger, names: Sequence[str]
) -> None:
    open_door().responses()
    with pytest.raises(BudgetError, match="restore the old class names"):
        open_door(classes=names).responses()
    with pytest.raises(BudgetError, match="restore the old class names"):
        open_door(["new"], [0], classes=names).responses()
    assert charges(ledger) == 1


@pytest.mark.parametrize("epsilon", [2.0, 0.5])
def test_labels_have_one_epsilon(open_door: Open, ledger: Ledger, epsilon: float) -> None:
    """Half of it would leave the other half for a second draw, among other classes."""
    open_door()  # nothing is charged yet
    with pytest.raises(InputError, match=f"budget of epsilon 1 .* got label_epsilon {epsilon:g}"):
        open_door(epsilon=epsilon)
    open_door().responses()
    with pytest.raises(InputError, match="add both epsilons"):
        open_door(epsilon=epsilon)
    assert charges(ledger) == 1


@pytest.mark.parametrize("secret_first", [True, False])
def test_secret_and_simulated_responses_never_share_a_ledger(
    open_door: Open, ledger: Ledger, secret_first: bool
) -> None:
    sources = [NoiseSource.from_os(), NoiseSource.for_simulation(0)]
    first, second = sources if secret_first else sources[::-1]
    open_door(noise=first).responses()
    with pytest.raises(
        InputError, match=r"ledger\.sqlite: responses to labels were s.*never mixed"
    ):
        open_door(noise=second)
    (balance,) = accounts(ledger)
    assert balance.simulated == (not secret_first)


def test_no_graph_can_have_the_account_of_labels() -> None:
    with pytest.raises(InputError, match="name of the graph"):
        expect_graph_name(LABELS_ACCOUNT)


def test_entries_are_alike_whatever_the_labels(open_door: Open, tmp_path: Path) -> None:
    """Two worlds that differ in one label, which also changes in a second call."""
    other = LABELS.copy()
    other[5] = (other[5] + 1) % 3
    written = []
    for name, worlds in (("one", (LABELS, LABELS)), ("two", (other, LABELS))):
        with closing(Ledger(tmp_path / name, clock=lambda: 0.0)) as own:
            for labels in worlds:
                open_door(labels=labels, ledger=own).responses()
            open_door([*IDS, "new"], [*labels, 1], ledger=own).responses()
            entries = list(own.entries())[1:]  # after the check of the key
        number = next(entry.facts["number"] for entry in entries if entry.cost > 0)
        assert number > 0
        written.append(
            [
                (
                    entry.sequence,
                    entry.graph,
                    entry.run,
                    {**entry.facts, "number": None},  # of the classes, under the key
                    entry.cost,
                    len(entry.receivers),
                )
                for entry in entries
            ]
        )
    one, two = written
    assert one == two
    assert {line[1] for line in one} == {LABELS_ACCOUNT}
    kinds = ["graph", "budget", "pure release", "labels answered", "labels answered"]
    assert [line[3]["kind"] for line in one] == kinds


def test_a_ledger_without_its_records_answers_nothing(
    open_door: Open, ledger: Ledger, tamper: Callable[..., None]
) -> None:
    """Changed labels would get fresh responses, at no charge."""
    open_door().responses()
    tamper(ledger.path, "DELETE FROM entries WHERE facts LIKE '%labels answered%'")
    assert ledger.verify() == ledger.head()[0]
    with pytest.raises(VesperError, match="nothing is charged to it"):
        open_door(labels=np.roll(LABELS, 1))
    # Not even if the head and its note are those of the ledger before the records.
    last = list(ledger.entries())[-1]
    tamper(
        ledger.path,
        "UPDATE head SET sequence = ?, digest = (SELECT digest FROM entries WHERE sequence = ?)",
        last.sequence,
        last.sequence,
    )
    with pytest.raises(VesperError, match="the ledger is older than what was charged"):
        Ledger(ledger.path, clock=lambda: 0.0)


@pytest.mark.parametrize("changed", ["zeroblob(length(receivers))", "substr(receivers, 33)"])
def test_a_ledger_with_other_records_answers_nothing(
    open_door: Open, ledger: Ledger, tamper: Callable[..., None], changed: str
) -> None:
    open_door().responses()
    tamper(
        ledger.path,
        f"UPDATE entries SET receivers = {changed} WHERE facts LIKE '%labels answered%'",
    )
    with pytest.raises(VesperError, match="was changed; nothing is charged to it"):
        open_door()


def test_a_ledger_older_than_its_records_is_refused(
    open_door: Open, ledger: Ledger, tmp_path: Path
) -> None:
    open_door(IDS[:9], LABELS[:9]).responses()
    ledger.close()
    older = ledger.path.read_bytes()
    with closing(Ledger(ledger.path, clock=lambda: 0.0)) as own:
        open_door(ledger=own).responses()
    ledger.path.write_bytes(older)
    with pytest.raises(VesperError, match="the ledger is older than what was charged"):
        Ledger(ledger.path, clock=lambda: 0.0)


def test_an_older_copy_of_the_ledger_gives_the_same_responses(
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


def test_words_follow_the_claimed_channel_over_keys_and_over_ids() -> None:
    """Responses follow the law of LABEL-RR over random keys, and over ids under one key."""
    chances = transition(epsilon=1.0, num_classes=3)[1]
    num_draws = 30_000
    one = np.ones(1, dtype=np.int64)
    by_key = [
        respond(
            one,
            epsilon=1.0,
            num_classes=3,
            words=KeyedWords(k.to_bytes(32, "little"), ["n"], ["low"], "3"),
        )[0]
        for k in range(num_draws)
    ]
    ids, ones = [f"n{k}" for k in range(num_draws)], np.ones(num_draws, dtype=np.int64)
    by_id = respond(
        ones, epsilon=1.0, num_classes=3, words=KeyedWords(b"k" * 32, ids, ["low"] * num_draws, "3")
    ).tolist()
    for seen in (by_key, by_id):
        counts = np.bincount(seen, minlength=3)
        assert stats.chisquare(counts, chances / chances.sum() * num_draws).pvalue > 1e-3


def test_words_depend_on_key_question_id_label_and_turn() -> None:
    ids, labels, rows = ["a", "b"], ["x", "y"], np.array([0, 1])
    words = KeyedWords(b"k" * 32, ids, labels, "3 1.0")
    first, second = words(rows), words(rows)
    others = [
        KeyedWords(b"l" * 32, ids, labels, "3 1.0")(rows),
        KeyedWords(b"k" * 32, ids, labels, "3 2.0")(rows),
        KeyedWords(b"k" * 32, ["c", "d"], labels, "3 1.0")(rows),
        KeyedWords(b"k" * 32, ids, ["y", "x"], "3 1.0")(rows),
    ]
    everything = np.concatenate([first, second, *others])
    assert len(set(everything.tolist())) == 12
    again = KeyedWords(b"k" * 32, ["b", "a"], ["y", "x"], "3 1.0")
    assert again(np.array([1, 0])).tolist() == first.tolist()
