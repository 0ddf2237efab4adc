"""Labels behind their door: charged before they are drawn, drawn once for a table, kept."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from vesper.errors import InputError, VesperError
from vesper.mechanism.label_door import LabelDoor, fingerprint_of
from vesper.mechanism.noise import NoiseSource
from vesper.privacy.account import accounts
from vesper.privacy.ledger import Ledger
from vesper.privacy.relation import LabelRelation

IDS = [f"n{k}" for k in range(400)]
LABELS = np.arange(400) % 3

Open = Callable[..., LabelDoor]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)


@pytest.fixture
def open_door(tmp_path: Path, ledger: Ledger) -> Open:
    def make(ids: list[str] = IDS, labels: object = LABELS, epsilon: float = 1.0) -> LabelDoor:
        return LabelDoor(
            ids,
            np.asarray(labels),
            num_classes=3,
            epsilon=epsilon,
            ledger=ledger,
            noise=NoiseSource.from_os(),
            kept=tmp_path / "kept",
        )

    return make


def charges(ledger: Ledger) -> int:
    return sum(entry.cost > 0 for entry in ledger.entries())


def test_drawn_once_whatever_the_order_and_however_often(open_door: Open, ledger: Ledger) -> None:
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


def test_another_table_is_another_account(open_door: Open, ledger: Ledger) -> None:
    open_door().responses()
    changed = LABELS.copy()
    changed[7] = 2
    open_door(labels=changed).responses()
    open_door(IDS[:-1], LABELS[:-1]).responses()
    assert charges(ledger) == len(accounts(ledger)) == 3


def test_a_table_has_one_budget(open_door: Open, ledger: Ledger) -> None:
    open_door().responses()
    with pytest.raises(InputError, match="budget of epsilon 1"):
        open_door(epsilon=2.0)
    assert charges(ledger) == 1


def test_nothing_is_drawn_twice_when_the_file_is_lost(
    open_door: Open, ledger: Ledger, tmp_path: Path
) -> None:
    open_door().responses()
    for file in (tmp_path / "kept").rglob("*.npz"):
        file.unlink()
    with pytest.raises(VesperError, match="lost or changed"):
        open_door().responses()


def test_nor_when_the_ledger_is_an_older_copy(
    open_door: Open, ledger: Ledger, tmp_path: Path
) -> None:
    older = {path: path.read_bytes() for path in tmp_path.glob("ledger.sqlite*")}
    open_door().responses()
    ledger.close()
    for path, content in older.items():
        path.write_bytes(content)
    with closing(Ledger(ledger.path, clock=lambda: 0.0)) as copy:
        door = LabelDoor(
            IDS,
            LABELS,
            num_classes=3,
            epsilon=1.0,
            ledger=copy,
            noise=NoiseSource.from_os(),
            kept=tmp_path / "kept",
        )
        with pytest.raises(VesperError, match="another ledger, or an older copy"):
            door.responses()


def test_the_name_needs_the_key() -> None:
    ids, labels = ["a", "b"], np.array([0, 1])
    name = fingerprint_of(ids, labels, 2, key=b"k" * 32)
    assert name != fingerprint_of(ids, labels, 2, key=b"l" * 32)
    assert name != fingerprint_of(["a", "c"], labels, 2, key=b"k" * 32)
    assert name != fingerprint_of(ids, labels[::-1], 2, key=b"k" * 32)
    assert name != fingerprint_of(["ab", ""], labels, 2, key=b"k" * 32)
