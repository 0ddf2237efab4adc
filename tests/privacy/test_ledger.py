import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import BudgetError, InputError
from vesper.privacy.budget import Budget
from vesper.privacy.events import UNIT, GaussianRelease
from vesper.privacy.ledger import Account, Ledger
from vesper.privacy.receivers import add_cost, encode

BUDGET = Budget(epsilon=1.0, delta=1e-6)
QUARTER = GaussianRelease(noise_std=2.0)


def opened(path: Path, *, cap: float = 1.0) -> tuple[Ledger, Account]:
    ledger = Ledger(path / "ledger.sqlite", clock=lambda: 12.5)
    return ledger, ledger.open_account("g", num_nodes=4, budget=BUDGET, cap=int(cap * UNIT))


def test_each_node_has_its_own_sum_and_the_fifth_charge_is_refused(tmp_path: Path) -> None:
    ledger, account = opened(tmp_path)
    for _ in range(4):
        account.charge(QUARTER, np.array([0, 1]), run="r")
    assert account.spent.tolist() == [UNIT, UNIT, 0, 0]
    with pytest.raises(BudgetError) as caught:
        account.charge(QUARTER, np.array([1, 2]), run="r")
    assert "Requested:  0.25" in str(caught.value)
    assert "Remaining:  0" in str(caught.value)
    assert "Difference: 0.25" in str(caught.value)
    account.charge(QUARTER, np.array([2, 3]), run="r")
    assert account.spent.tolist() == [UNIT, UNIT, UNIT // 4, UNIT // 4]
    assert len(ledger.entries()) == 1 + 5


def test_a_second_run_starts_from_what_is_left(tmp_path: Path) -> None:
    first, account = opened(tmp_path)
    account.charge(GaussianRelease(noise_std=1.1), None, run="one")
    first.close()
    _, again = opened(tmp_path)
    with pytest.raises(BudgetError):
        again.charge(GaussianRelease(noise_std=1.1), None, run="two")
    again.charge(GaussianRelease(noise_std=10.0), None, run="two")


def test_a_budget_is_not_set_twice(tmp_path: Path) -> None:
    ledger, _ = opened(tmp_path)
    with pytest.raises(InputError, match="has a budget of epsilon 1"):
        ledger.open_account("g", num_nodes=4, budget=Budget(epsilon=9.0, delta=1e-6), cap=9 * UNIT)


def test_concurrent_runs_cannot_overspend_together(tmp_path: Path) -> None:
    opened(tmp_path)[0].close()

    def spend(_: int) -> int:
        ledger, account = opened(tmp_path)
        done = 0
        for _ in range(20):
            try:
                account.charge(GaussianRelease(noise_std=4.0), None, run="r")
                done += 1
            except BudgetError:
                break
        ledger.close()
        return done

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(spend, range(4))) == 16


@pytest.mark.parametrize("column", ["time", "graph", "run", "facts", "cost", "receivers", "digest"])
def test_tampering_with_any_column_is_detected(tmp_path: Path, column: str) -> None:
    ledger, account = opened(tmp_path)
    for _ in range(3):
        account.charge(QUARTER, np.array([0, 1]), run="r")
    assert ledger.verify() is None
    ledger.close()
    raw = sqlite3.connect(tmp_path / "ledger.sqlite")
    with pytest.raises(sqlite3.IntegrityError, match="never changed"):
        raw.execute("UPDATE entries SET cost = 0")
    with pytest.raises(sqlite3.IntegrityError, match="never removed"):
        raw.execute("DELETE FROM entries")
    raw.execute("DROP TRIGGER entries_stay")
    value = {"time": 1.0, "cost": 1, "receivers": b"A", "digest": b"x"}.get(column, "x")
    raw.execute(f"UPDATE entries SET {column} = ? WHERE sequence = 3", (value,))
    raw.commit()
    raw.close()
    assert Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0).verify() == 3


def test_a_removed_entry_is_detected(tmp_path: Path) -> None:
    ledger, account = opened(tmp_path)
    for _ in range(3):
        account.charge(QUARTER, None, run="r")
    ledger.close()
    raw = sqlite3.connect(tmp_path / "ledger.sqlite")
    raw.execute("DROP TRIGGER entries_last")
    raw.execute("DELETE FROM entries WHERE sequence = 2")
    raw.commit()
    raw.close()
    assert Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0).verify() == 2


def test_a_file_that_is_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_text("hello, I am no database, but I am long enough" * 50)
    with pytest.raises(InputError, match="cannot be used as a ledger"):
        opened(tmp_path)


@pytest.mark.parametrize("noise_std", [0.0, -1.0, float("inf"), float("nan")])
def test_a_release_without_noise_does_not_exist(noise_std: float) -> None:
    with pytest.raises(InputError, match="noise_std"):
        GaussianRelease(noise_std=noise_std)


@given(st.floats(0.01, 1e4))
def test_costs_are_rounded_against_ourselves(noise_std: float) -> None:
    from fractions import Fraction

    exact = UNIT / Fraction(noise_std) ** 2
    cost = GaussianRelease(noise_std=noise_std).cost
    assert exact <= cost < exact + 1


@given(st.integers(1, 2000), st.data())
def test_receivers_round_trip(num_nodes: int, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, num_nodes - 1), unique=True, max_size=50))
    spent = np.zeros(num_nodes, dtype=np.int64)
    add_cost(encode(np.array(chosen, dtype=np.int64), num_nodes), 3, spent)
    assert np.flatnonzero(spent).tolist() == sorted(chosen)
    assert set(spent.tolist()) <= {0, 3}


def test_receivers_that_repeat_or_do_not_exist_are_refused() -> None:
    with pytest.raises(InputError, match="once"):
        encode(np.array([1, 1]), 4)
    with pytest.raises(InputError, match="between 0 and 3"):
        encode(np.array([4]), 4)
    assert encode(np.arange(4), 4) == encode(None, 4)
