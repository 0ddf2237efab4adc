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
from vesper.transport.channel import closing_in_words
from vesper.transport.close_reason import Parting, error_of, parting_of
from vesper.transport.memory import memory_pair


@pytest.mark.parametrize(
    ("error", "parting"),
    [
        (BudgetError("x"), Parting.BUDGET),
        (InputError("x"), Parting.SETTINGS),
        (PeerError("another version"), Parting.SETTINGS),
        (RemoteProtocolError("x"), Parting.PROTOCOL),
        (LocalProtocolError("x"), Parting.SETTINGS),
        (PeerLostError("x"), Parting.FAULT),
        (VesperError("the disk is full"), Parting.FAULT),
        (ZeroDivisionError("a bug"), Parting.FAULT),
        (KeyboardInterrupt(), Parting.USER),
        (SystemExit(), Parting.USER),
    ],
    ids=repr,
)
def test_the_other_end_is_told_the_kind_of_error_and_nothing_of_its_text(
    error: BaseException, parting: Parting
) -> None:
    assert parting_of(error) is parting
    ours, theirs = memory_pair(patience=1)
    with pytest.raises(type(error)), closing_in_words(ours):
        raise error
    with pytest.raises(PeerError) as told:
        theirs.receive()
    assert str(told.value) == str(error_of(parting, "the peer"))


@pytest.mark.parametrize("parting", Parting)
def test_words_are_short_and_say_who(parting: Parting) -> None:
    said = str(error_of(parting, "bank"))
    assert said.startswith("bank ")
    assert said.isprintable()
    assert len(said) < 130


def test_some_come_back_and_others_need_a_person() -> None:
    waited = {Parting.DONE, Parting.USER, Parting.FAULT}
    for parting in Parting:
        error = error_of(parting, "bank")
        assert isinstance(error, PeerLostError if parting in waited else PeerStoppedError)
        assert getattr(error, "is_farewell", False) is (parting is Parting.DONE)


def test_good_order_is_a_farewell() -> None:
    ours, theirs = memory_pair(patience=1)
    with closing_in_words(ours) as channel:
        channel.send(b"last")
    assert theirs.receive() == b"last"
    with pytest.raises(PeerLostError, match="closed the connection") as told:
        theirs.receive()
    assert told.value.is_farewell
