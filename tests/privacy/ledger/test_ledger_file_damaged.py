"""A ledger with a flipped bit, or with values no ledger has written, never ends in a traceback."""

import random
import shutil
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vesper.cli.budget_command import show, verify
from vesper.errors import InputError, VesperError
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import GaussianRelease, PureRelease
from vesper.privacy.ledger.account import open_account
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.privacy.ledger.overlap import SLOT_DIGITS, GraphVersion
from vesper.privacy.ledger.receipt import Receipt
from vesper.privacy.ledger.reservation import Reservation, open_runs, return_unused
from vesper.privacy.ledger.store import Ledger

FLIPS, NIGHTLY_FLIPS = 250, 10_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with an entry of every kind that a data party's ledger has."""
    path = tmp_path / "ledger.sqlite"
    with closing(Ledger(path, clock=lambda: 12.5)) as ledger:
        version = GraphVersion(num_nodes=9, ids="a1", edges="b2", sketch="c3" * SLOT_DIGITS)
        budget = Budget(epsilon=2.0, delta=1e-6)
        account = open_account(ledger, "payments", num_nodes=9, version=version, budget=budget)
        account.charge(PureRelease(epsilon=0.5, what="degree histogram"), None, run="degrees")
        noise_std = account.noise_std_for(releases=5)
        event = GaussianRelease(noise_std=noise_std)
        reserved = Reservation(
            plan="certified", planned_epsilon=0.5, releases=2, mu_squared=2.0 * event.cost
        )
        account.reserve(reserved, run="first")
        receipt = account.charge_once(event, None, run="first", number=0)
        assert isinstance(receipt, Receipt)
        account.mark_stored(receipt, digest="d" * 32)
        return_unused(ledger, run="first")
        account.charge(event, np.arange(4), run="second")
        other = open_account(ledger, "other", num_nodes=9, version=version)
        other.note_unprotected(run="raw", plan="none")
    for suffix in ("-wal", "-shm"):
        assert not path.with_name(path.name + suffix).exists()
    return path


def use(path: Path) -> bool:
    """Read, verify, display and open a ledger as commands do; whether it verifies."""
    is_valid = False
    with suppress(VesperError):
        verify(path)
        is_valid = True
    with suppress(VesperError):
        show(path)
    with suppress(VesperError), closing(open_to_read(path)) as reader:
        reader.behind_head_note()
        open_runs(reader)
        accounts(reader)
    with suppress(VesperError), closing(Ledger(path, clock=lambda: 13.5)) as ledger:
        budget = Budget(epsilon=2.0, delta=1e-6)
        open_account(ledger, "payments", num_nodes=9, budget=budget)
    return is_valid


def content(path: Path) -> list[Any]:
    """All entries and the head, or an empty list if they cannot be read."""
    with suppress(VesperError), closing(open_to_read(path)) as reader:
        return [*reader.entries(), reader.head()]
    return []


def flip(path: Path, copy: Path, bits: Iterable[int]) -> tuple[int, int]:
    """Use a copy of the ledger with each of these bits flipped; count valid ones and changes."""
    whole, expected = path.read_bytes(), content(path)
    valid = changed = 0
    for bit in bits:
        for old in copy.iterdir():
            old.unlink()
        for each in path.parent.glob("ledger.sqlite.*"):
            shutil.copy(each, copy)
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        (copy / path.name).write_bytes(damaged)
        found = content(copy / path.name)
        if use(copy / path.name):
            assert found == expected, f"bit {bit} changed what the ledger says and verifies"
            valid += 1
        changed += found != expected
    return valid, changed


def flip_random(path: Path, copy: Path, flips: int) -> None:
    assert use(path)
    copy.mkdir()
    rng = random.Random(31)
    used = [place for place, value in enumerate(path.read_bytes()) if value]  # the rest is empty
    bits = (8 * rng.choice(used) + rng.randrange(8) for _ in range(flips))
    valid, changed = flip(path, copy, bits)
    assert changed > flips // 2
    assert valid < flips // 2


def test_no_flipped_bit_ends_in_a_traceback_or_passes_unnoticed(path: Path, tmp_path: Path) -> None:
    flip_random(path, tmp_path / "copy", FLIPS)


@pytest.mark.nightly
def test_no_flipped_bit_of_many_ends_in_a_traceback(path: Path, tmp_path: Path) -> None:
    flip_random(path, tmp_path / "copy", NIGHTLY_FLIPS)


def test_no_flipped_bit_of_the_header_ends_in_a_traceback(path: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    flip(path, tmp_path / "copy", range(0, 8 * 100, 3))


@pytest.mark.parametrize(
    ("column", "where", "value"),
    [
        ("graph", "cost > 0", "CAST(x'ff61' AS TEXT)"),
        ("run", "cost > 0", "CAST(x'c328' AS TEXT)"),
        ("facts", "cost > 0", "CAST(x'7b80' AS TEXT)"),
        ("facts", "cost > 0", '\'{"kind": "pure release", "epsilon": NaN}\''),
        ("facts", "cost > 0", '\'{"kind": "pure release", "epsilon": 1e999}\''),
        ("facts", "cost > 0", '\'{"kind": "pure release", "epsilon": "half"}\''),
        ("facts", "cost > 0", "'{\"kind\": \"x\", \"y\": ' || '7' || hex(zeroblob(4000)) || '}'"),
        ("facts", "cost > 0", "replace(hex(zeroblob(100000)), '0', '[')"),
        ("facts", "facts LIKE '%num_nodes%'", '\'{"kind": "graph", "num_nodes": 1e300}\''),
        (
            "facts",
            "facts LIKE '%\"graph\"%'",
            '\'{"kind": "graph", "num_nodes": \' || 1e18 || \'}\'',
        ),
        (
            "facts",
            "facts LIKE '%\"graph\"%'",
            '\'{"kind": "graph", "num_nodes": 999999999999999999}\'',
        ),
        ("facts", "facts LIKE '%version%'", '\'{"kind": "version"}\''),
        ("facts", "facts LIKE '%reserved%'", '\'{"kind": "reserved"}\''),
        ("facts", "facts LIKE '%epsilon%'", '\'{"kind": "budget", "epsilon": -1.0}\''),
        ("receivers", "cost > 0", "x'4c0900000000000000ffffffffffffff00'"),
        ("receivers", "cost > 0", "x''"),
        ("cost", "cost > 0", "9e999"),
        ("cost", "cost > 0", "1e300"),
        ("time", "cost > 0", "-9e999"),
        ("digest", "cost > 0", "x''"),
        ("sequence", "cost > 0", "-9223372036854775807 + sequence"),
    ],
)
def test_values_that_no_ledger_has_written_are_found(
    path: Path, tamper: Callable[..., None], column: str, where: str, value: str
) -> None:
    tamper(path, f"UPDATE entries SET {column} = {value} WHERE {where}")
    assert not use(path)


@pytest.mark.parametrize("value", ["'text'", "NULL", "x'00'", "3.5", "99999999999"])
@pytest.mark.parametrize("table", ["entries", "head"])
def test_values_of_another_type_are_found(
    path: Path, tamper: Callable[..., None], table: str, value: str
) -> None:
    """Without the schema's own checks, as after damage that reaches both."""
    for column in (
        ("digest", "sequence", "cost", "graph")
        if table == "entries"
        else (
            "digest",
            "sequence",
        )
    ):
        columns = "sequence, time, graph, run, facts, cost, receivers, digest"
        columns = columns if table == "entries" else "only, sequence, digest"
        changed = columns.replace(column, f"{value} AS {column}")
        for statement in (
            f"CREATE TABLE loose AS SELECT {changed} FROM {table}",
            f"DROP TABLE {table}",
            f"ALTER TABLE loose RENAME TO {table}",
        ):
            tamper(path, statement)
        assert not use(path)


def test_a_note_of_a_head_with_thousands_of_digits_is_named(path: Path) -> None:
    path.with_name("ledger.sqlite.head").write_text("9" * 5000 + ":00")
    with pytest.raises(VesperError, match="older than what was charged"):
        Ledger(path, clock=lambda: 0.0)


def test_a_damaged_entry_is_named_with_what_to_do(path: Path, tamper: Callable[..., None]) -> None:
    tamper(path, "UPDATE entries SET facts = '{' WHERE sequence = 3")
    with (
        closing(open_to_read(path)) as reader,
        pytest.raises(InputError, match=r"entry 3: expected facts.*run `vesper budget verify`"),
    ):
        accounts(reader)
