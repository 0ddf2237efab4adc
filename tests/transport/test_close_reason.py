"""Every error maps to a close reason, and every close reason to an error at the other end."""

import pytest

from vesper.errors import (
    BudgetError,
    InputError,
    LocalProtocolError,
    PeerError,
    PeerLostError,
    PeerStoppedError,
    RemoteProtocolError,
    VesperError,
)
from vesper.transport.channel import closing_with_reason
from vesper.transport.close_reason import (
    CloseReason,
    close_reason_for,
    error_for_close_reason,
    without_charge,
)
from vesper.transport.memory import memory_pair


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (BudgetError("x"), CloseReason.BUDGET),
        (InputError("x"), CloseReason.SETTINGS),
        (PeerError("another version"), CloseReason.SETTINGS),
        (RemoteProtocolError("x"), CloseReason.PROTOCOL),
        (LocalProtocolError("x"), CloseReason.SETTINGS),
        (PeerLostError("x"), CloseReason.FAULT),
        (VesperError("the disk is full"), CloseReason.FAULT),
        (ZeroDivisionError("a bug"), CloseReason.FAULT),
        (KeyboardInterrupt(), CloseReason.USER),
        (SystemExit(), CloseReason.USER),
    ],
    ids=repr,
)
def test_the_other_end_learns_the_kind_of_error_and_nothing_of_its_text(
    error: BaseException, reason: CloseReason
) -> None:
    assert close_reason_for(error) is reason
    ours, theirs = memory_pair(patience=1)
    with pytest.raises(type(error)), closing_with_reason(ours):
        raise error
    with pytest.raises(PeerError) as raised:
        theirs.receive()
    assert str(raised.value) == str(error_for_close_reason(reason, "the peer"))


@pytest.mark.parametrize("reason", CloseReason)
def test_messages_are_short_and_name_the_peer(reason: CloseReason) -> None:
    message = str(error_for_close_reason(reason, "bank"))
    assert message.startswith("bank ")
    assert message.isprintable()
    assert len(message) < 130


def test_some_peers_may_come_back_and_others_need_a_person() -> None:
    may_come_back = {CloseReason.DONE, CloseReason.USER, CloseReason.FAULT}
    for reason in CloseReason:
        error = error_for_close_reason(reason, "bank")
        assert isinstance(error, PeerLostError if reason in may_come_back else PeerStoppedError)
        assert getattr(error, "is_clean_close", False) is (reason is CloseReason.DONE)


def test_only_some_reasons_say_that_nothing_was_charged() -> None:
    uncharged = [why for why in CloseReason if "UNCHARGED" in why.name]
    for reason in CloseReason:
        error = error_for_close_reason(reason, "bank")
        assert getattr(error, "nothing_was_charged", False) is (reason in uncharged)
    assert [without_charge(why) for why in (CloseReason.BUDGET, CloseReason.SETTINGS)] == uncharged[
        :2
    ]
    assert without_charge(CloseReason.PROTOCOL) is uncharged[2]
    for unchanged in (CloseReason.DONE, CloseReason.USER, CloseReason.FAULT, CloseReason.EXCLUDED):
        assert without_charge(unchanged) is unchanged


def test_a_clean_end_is_a_clean_close() -> None:
    ours, theirs = memory_pair(patience=1)
    with closing_with_reason(ours) as channel:
        channel.send(b"last")
    assert theirs.receive() == b"last"
    with pytest.raises(PeerLostError, match="closed the connection") as raised:
        theirs.receive()
    assert raised.value.is_clean_close
