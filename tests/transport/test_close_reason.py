"""Every error has its word, every word its meaning at the other end."""

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
from vesper.transport.close_reason import CloseReason, close_reason_for, error_for_close_reason
from vesper.transport.memory import memory_pair


@pytest.mark.parametrize(
    ("error", "parting"),
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
def test_the_other_end_is_told_the_kind_of_error_and_nothing_of_its_text(
    error: BaseException, parting: CloseReason
) -> None:
    assert close_reason_for(error) is parting
    ours, theirs = memory_pair(patience=1)
    with pytest.raises(type(error)), closing_with_reason(ours):
        raise error
    with pytest.raises(PeerError) as told:
        theirs.receive()
    assert str(told.value) == str(error_for_close_reason(parting, "the peer"))


@pytest.mark.parametrize("parting", CloseReason)
def test_words_are_short_and_say_who(parting: CloseReason) -> None:
    said = str(error_for_close_reason(parting, "bank"))
    assert said.startswith("bank ")
    assert said.isprintable()
    assert len(said) < 130


def test_some_come_back_and_others_need_a_person() -> None:
    waited = {CloseReason.DONE, CloseReason.USER, CloseReason.FAULT}
    for parting in CloseReason:
        error = error_for_close_reason(parting, "bank")
        assert isinstance(error, PeerLostError if parting in waited else PeerStoppedError)
        assert getattr(error, "is_clean_close", False) is (parting is CloseReason.DONE)


def test_good_order_is_a_farewell() -> None:
    ours, theirs = memory_pair(patience=1)
    with closing_with_reason(ours) as channel:
        channel.send(b"last")
    assert theirs.receive() == b"last"
    with pytest.raises(PeerLostError, match="closed the connection") as told:
        theirs.receive()
    assert told.value.is_clean_close
