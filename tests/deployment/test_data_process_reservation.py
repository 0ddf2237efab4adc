"""The budget of a run is reserved before its peer can see this party, and returned at the end."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.data_process import run_data_party
from vesper.deployment.state_folder import session_run_name
from vesper.errors import BudgetError, InputError, PeerError
from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.privacy.ledger.reader import Entry
from vesper.privacy.ledger.reservation import open_runs
from vesper.session.contract import approve
from vesper.transport.channel import Channel
from vesper.transport.reconnect import Connect

if TYPE_CHECKING:
    from tests.fixtures.both_parties import Both

OPENED = ["key", "graph", "budget", "reserved"]
RELEASED = ["gaussian release", "stored"] * 3


def entries(config: PartyConfig) -> list[Entry]:
    with closing(open_to_read(config.party.ledger)) as ledger:
        return list(ledger.entries())


def kinds(config: PartyConfig) -> list[str]:
    """Kinds of all entries but one: a version is recorded each time that a graph is opened."""
    found = [str(entry.facts["kind"]) for entry in entries(config)]
    return [kind for kind in found if kind != "version"]


def reserved_runs(config: PartyConfig) -> dict[str, str]:
    with closing(open_to_read(config.party.ledger)) as ledger:
        return open_runs(ledger)


def session_of(config: PartyConfig) -> str:
    return session_run_name((config.party.state / "session").read_bytes().hex())


class NoPeer:
    """A connector to a peer that never connects; calls a function when this side is visible."""

    def __init__(self, visible: Callable[[PartyConfig], object], error: BaseException) -> None:
        self._visible, self._error = visible, error

    @contextmanager
    def __call__(self, config: PartyConfig, **rest: Any) -> Iterator[Connect]:
        self._visible(config)

        def connect(limit: float | None) -> Channel:
            raise self._error

        yield connect


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails as soon as a party listens or connects."""

    def seen(*_: object, **__: object) -> NoReturn:
        pytest.fail("the peer could see this side")

    monkeypatch.setattr("vesper.deployment.connect.Listener", seen)
    monkeypatch.setattr("vesper.deployment.connect.connect", seen)


def test_it_is_reserved_before_the_peer_is_contacted(both: "Both") -> None:
    data, _ = both.configs()
    at_contact: list[tuple[list[str], dict[str, str], str]] = []

    def look(config: PartyConfig) -> None:
        at_contact.append((kinds(config), reserved_runs(config), session_of(config)))

    with pytest.raises(KeyboardInterrupt):  # the user stops waiting
        run_data_party(data, connector=NoPeer(look, KeyboardInterrupt()))
    ((written, reserved, run),) = at_contact
    assert written == OPENED
    assert reserved == {run: "payments"}


def test_a_run_that_waits_in_vain_keeps_its_reservation_until_it_is_resumed(both: "Both") -> None:
    data, label = both.configs()
    nobody = NoPeer(lambda config: None, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run_data_party(data, connector=nobody)
    before = reserved_runs(data)
    with pytest.raises(KeyboardInterrupt):
        run_data_party(data, resume=True, connector=nobody)
    assert reserved_runs(data) == before == {session_of(data): "payments"}
    for side in both.run(data, label, resume=True):
        side.result()
    assert kinds(data).count("reserved") == kinds(data).count("returned") == 1
    assert reserved_runs(data) == {}


def test_the_rest_is_returned_when_the_run_is_complete(both: "Both") -> None:
    data, label = both.configs()
    for side in both.run(data, label):
        side.result()
    assert kinds(data) == [*OPENED, *RELEASED, "returned"]
    assert {entry.run for entry in entries(data) if entry.cost > 0} == {session_of(data)}
    assert reserved_runs(data) == {}


def test_a_discarded_session_returns_everything(both: "Both") -> None:
    data, label = both.configs()
    with pytest.raises(PeerError, match="of another bank"):
        run_data_party(data, connector=NoPeer(kinds, PeerError("of another bank")))
    assert not (data.party.state / "session").exists()
    assert kinds(data) == [*OPENED, "returned"]
    for side in both.run(data, label):
        side.result()
    assert kinds(data)[len(OPENED) + 1 :] == ["reserved", *RELEASED, "returned"]


def test_a_session_that_both_sides_refuse_returns_everything(both: "Both") -> None:
    """The contracts differ, which both learn from their first messages."""
    data, label = both.configs()
    other = label.shared.model_copy(
        update={"run": label.shared.run.model_copy(update={"epochs": 3})}
    )
    approve(label.party.state, other)
    for side in both.run(data, label.model_copy(update={"shared": other})):
        assert side.exception() is not None
    assert kinds(data) == [*OPENED, "returned"]


@pytest.mark.usefixtures("unseen")
def test_without_budget_nobody_sees_this_side(both: "Both") -> None:
    data, _ = both.configs()
    nobody = NoPeer(lambda config: None, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run_data_party(data, connector=nobody)
    both.change('state = "state"', 'state = "second"')
    second, _ = both.configs()
    before = entries(second)
    with pytest.raises(BudgetError, match="graph 'payments' does not allow this"):
        run_data_party(second)
    assert entries(second) == before
    assert not (second.party.state / "session").exists()


@pytest.mark.usefixtures("unseen")
def test_a_graph_without_a_name_is_never_used(both: "Both") -> None:
    both.change('graph = "payments"', "")
    data, _ = both.configs()
    with pytest.raises(InputError, match="expected a name for the graph whose budget is charged"):
        run_data_party(data)
    assert not data.party.ledger.exists()


@pytest.mark.usefixtures("unseen")
def test_a_promised_degree_is_checked_before_anybody_sees_this_side(both: "Both") -> None:
    both.change("hops = 2", 'hops = 2\nprivacy_unit = "node"\nmax_degree = 1')  # a ring has 2
    data, _ = both.configs()
    with pytest.raises(InputError, match="at most 1 neighbours per node"):
        run_data_party(data)
    assert not (data.party.state / "session").exists()
    assert kinds(data) == ["key"]
