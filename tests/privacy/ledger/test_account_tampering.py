"""Accounts in a ledger that was tampered with."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from vesper.errors import InputError, VesperError
from vesper.privacy.events import GaussianRelease
from vesper.privacy.ledger.account_reader import accounts

if TYPE_CHECKING:
    from tests.privacy.conftest import LedgerFolder

EVENT = GaussianRelease(noise_std=20.0)


@pytest.fixture
def charged_once(folder: "LedgerFolder") -> "LedgerFolder":
    folder.account().charge(EVENT, None, run="r")
    return folder


def test_a_changed_ledger_is_not_charged(
    charged_once: "LedgerFolder", tamper: Callable[..., None]
) -> None:
    tamper(charged_once.path, "UPDATE entries SET cost = cost / 2")
    with pytest.raises(VesperError, match="was changed"):
        charged_once.account()


def test_a_ledger_without_the_entry_of_a_graph_is_refused(
    charged_once: "LedgerFolder", tamper: Callable[..., None]
) -> None:
    tamper(charged_once.path, "DELETE FROM entries WHERE facts LIKE '%num_nodes%'")
    with pytest.raises(InputError, match="which no entry introduces"):
        accounts(charged_once.open_read_only())


@pytest.mark.parametrize(
    ("column", "value"), [("receivers", b"?"), ("cost", 1e6), ("facts", '{"kind": "pure release"}')]
)
def test_impossible_charges_are_named(
    charged_once: "LedgerFolder", tamper: Callable[..., None], column: str, value: object
) -> None:
    tamper(charged_once.path, f"UPDATE entries SET {column} = ? WHERE cost > 0", value)
    with pytest.raises(InputError, match="entry 4 was not written by vesper"):
        accounts(charged_once.open_read_only())
