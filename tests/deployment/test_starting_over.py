"""A session is discarded only if it is certain that nothing was charged for it."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from vesper.deployment import data_process
from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.label_process import run_label_party
from vesper.deployment.starting_over import may_start_over
from vesper.deployment.state_folder import hold_state_folder
from vesper.errors import (
    BudgetError,
    InputError,
    PeerError,
    PeerLostError,
    PeerStoppedError,
    RemoteProtocolError,
    VesperError,
)
from vesper.session import label_side
from vesper.session.doors import open_door
from vesper.transport.close_reason import CloseReason, error_for_close_reason
from vesper.transport.frame_log import RECEIVED, SENT, FrameLog

if TYPE_CHECKING:
    from tests.fixtures.both_parties import Both

DECLARED = [
    error_for_close_reason(why, "platform") for why in CloseReason if "UNCHARGED" in why.name
]
NOT_DECLARED = [
    InputError("the certificate has moved"),
    BudgetError("spent"),
    PeerError("platform refused us"),
    RemoteProtocolError("plain bytes"),
    PeerLostError("gone"),
    VesperError("the disk is full"),
    *(
        error_for_close_reason(why, "platform")
        for why in CloseReason
        if "UNCHARGED" not in why.name
    ),
]


def begin(config: PartyConfig, *, sent: int, received: int) -> Path:
    """Make the state of a session with so many frames."""
    state = config.party.state
    (state / "session").write_bytes(b"sixteen bytes ..")
    with closing(FrameLog(state / "frames")) as log:
        for direction, count in ((SENT, sent), (RECEIVED, received)):
            for number in range(count):
                log.append(direction, number, b"frame")
    return state


def fail_in(config: PartyConfig, error: Exception, *, resume: bool) -> bool:
    """Let a session fail; return whether it was kept."""
    session, frames = config.party.state / "session", config.party.state / "frames"
    name = session.read_bytes()
    if not resume:
        session.unlink()  # it is named when the party connects

    def fail() -> None:
        with hold_state_folder(config, resume=resume):
            session.write_bytes(name)
            raise error

    with pytest.raises(type(error)):
        fail()
    assert frames.exists() == session.exists()
    return session.exists()


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("error", NOT_DECLARED, ids=lambda error: str(error)[:40])
def test_a_label_party_that_has_sent_its_roster_keeps_its_session(
    both: "Both", error: Exception, resume: bool
) -> None:
    label = both.configs()[1]
    begin(label, sent=2, received=1)
    assert fail_in(label, error, resume=resume)


@pytest.mark.parametrize("error", DECLARED, ids=str)
def test_it_starts_over_once_its_peer_has_declared_that_nothing_was_charged(
    both: "Both", error: Exception
) -> None:
    label = both.configs()[1]
    begin(label, sent=2, received=1)
    assert fail_in(label, error, resume=True)  # never a resumed session
    assert not fail_in(label, error, resume=False)
    begin(label, sent=2, received=2)  # embeddings have arrived, whatever the peer says
    assert fail_in(label, error, resume=False)


def test_before_the_roster_only_a_lost_peer_is_waited_for(both: "Both") -> None:
    for config in both.configs():
        begin(config, sent=1, received=1)
        for error in [PeerLostError("gone"), VesperError("the disk is full")]:
            assert fail_in(config, error, resume=False)
        for resumed in (True, False):
            may = may_start_over(config, InputError("the contracts differ"), resumed=resumed)
            assert may is not resumed
        assert not fail_in(config, InputError("the contracts differ"), resume=False)


@pytest.fixture
def charged_first(both: "Both") -> "Both":
    """A run that is charged for its whole graph before the first embeddings are sent."""
    both.change('method = "certified"', 'method = "edgerand"')
    both.change("hops = 2\n", "")
    return both


def test_a_killed_label_party_without_its_certificate_can_still_be_resumed(
    charged_first: "Both", monkeypatch: pytest.MonkeyPatch
) -> None:
    both = charged_first
    data, label = both.configs()

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt  # after the roster, before embeddings arrive

    with monkeypatch.context() as dying:
        dying.setattr(label_side, "run_label_side", die)
        for side in both.run(data, label):
            side.exception()
    assert both.charged(data) == 1
    certificate = label.tls.certificate
    certificate.rename(certificate.with_suffix(".away"))
    with pytest.raises(InputError, match="cannot be read"):
        run_label_party(label, resume=True)
    certificate.with_suffix(".away").rename(certificate)
    for side in both.run(data, label, resume=True, of_label={"resume": True}):
        side.result()
    assert both.charged(data) == 1


def test_a_data_party_that_was_charged_does_not_say_otherwise(
    charged_first: "Both", monkeypatch: pytest.MonkeyPatch
) -> None:
    both = charged_first
    data, label = both.configs()

    def failing(*args: Any, **how: Any) -> Any:
        door, run_spec = open_door(*args, **how)
        perturb = door.perturb

        def charge_and_fail(*what: Any, **how: Any) -> None:
            perturb(*what, **how)
            raise InputError("a folder was moved")

        monkeypatch.setattr(door, "perturb", charge_and_fail)
        return door, run_spec

    with monkeypatch.context() as broken:
        broken.setattr(data_process, "open_door", failing)
        ours, theirs = both.run(data, label)
    with pytest.raises(InputError, match="a folder was moved"):
        ours.result()
    with pytest.raises(PeerStoppedError, match="do not match") as stopped:
        theirs.result()
    assert not stopped.value.nothing_was_charged
    assert both.charged(data) == 1
    for side in both.run(data, label, resume=True, of_label={"resume": True}):
        side.result()
    assert both.charged(data) == 1


def test_both_start_over_after_a_roster_that_the_data_party_rejects(both: "Both") -> None:
    data, label = both.configs()
    path = data.party.folder / "nodes.parquet"
    whole = pq.read_table(path)
    others = whole["id"].to_pylist()[:-1]
    pq.write_table(whole.set_column(0, "id", [[*others, 1000]]), path)
    edges = data.party.folder / "edges.parquet"
    links = pq.read_table(edges)
    pq.write_table(links.slice(0, 50), edges)
    ours, theirs = both.run(data, label)
    with pytest.raises(RemoteProtocolError, match="are not nodes here"):
        ours.result()
    with pytest.raises(PeerStoppedError) as stopped:
        theirs.result()
    assert stopped.value.nothing_was_charged
    pq.write_table(whole, path)
    pq.write_table(links, edges)
    for side in both.run(data, label):  # without --resume
        side.result()
    assert both.charged(data) == 3
