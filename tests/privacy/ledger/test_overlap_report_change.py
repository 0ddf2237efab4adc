"""The owner is warned if a run that is resumed began with other edges."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from vesper.privacy.ledger.account import Account, open_account
from vesper.privacy.ledger.overlap import EMPTY_SLOT, GraphVersion
from vesper.privacy.ledger.overlap_report import describe_change
from vesper.privacy.ledger.reservation import Reservation
from vesper.privacy.ledger.store import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)) as opened:
        yield opened


def open_with(ledger: Ledger, edges: str, graph: str = "g") -> Account:
    version = GraphVersion(num_nodes=2, ids="ids", edges=edges, sketch=EMPTY_SLOT)
    return open_account(ledger, graph, num_nodes=2, version=version)


def test_only_a_change_since_the_run_began_is_described(ledger: Ledger) -> None:
    open_with(ledger, "before")
    open_with(ledger, "first").reserve(Reservation(plan="certified", mu_squared=1.0), run="r")
    assert describe_change(ledger, "g", run="r") == []
    open_with(ledger, "other", graph="another")
    open_with(ledger, "first")
    assert describe_change(ledger, "g", run="r") == []
    open_with(ledger, "second")
    (text,) = describe_change(ledger, "g", run="r")
    assert "graph 'g' has other edges than when this run began" in text
    assert describe_change(ledger, "g", run="another run") == []
    assert describe_change(ledger, "another", run="r") == []


def test_a_run_that_reserves_again_began_with_the_first_version(ledger: Ledger) -> None:
    reservation = Reservation(plan="none")
    for edges in ("first", "second"):
        open_with(ledger, edges).reserve(reservation, run="r")
        with ledger.transaction():
            facts = {"kind": "returned"}
            ledger.append(graph="g", run="r", facts=facts, cost=0.0, encoded_receivers=b"")
    assert describe_change(ledger, "g", run="r")
    open_with(ledger, "first")
    assert describe_change(ledger, "g", run="r") == []
