import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import RemoteProtocolError
from vesper.protocol.codec import KINDS, decode, encode
from vesper.protocol.messages import (
    DataHello,
    EmbeddingClientHello,
    EmbeddingQuery,
    Embeddings,
    EmbeddingServerHello,
    EvaluationReply,
    Farewell,
    Gradients,
    LabelHello,
    Message,
    Purpose,
    QueryAnswer,
    Roster,
    SessionFinished,
    Verdict,
)

TENSORS = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)).map(
    lambda shape: np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
)
STEPS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.lists(st.text(), max_size=4).map(tuple)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(DataHello, version=STEPS, contract=st.text(), num_nodes=STEPS, num_features=STEPS),
    st.builds(LabelHello, version=STEPS, contract=st.text(), num_outputs=STEPS),
    st.builds(Roster, train=TEXTS, val=TEXTS, test=TEXTS, label_posteriors=TENSORS),
    st.builds(
        Embeddings,
        step=STEPS,
        purpose=st.sampled_from(Purpose),
        roots_digest=st.binary(max_size=20),
        values=TENSORS,
    ),
    st.builds(Gradients, step=STEPS, values=TENSORS),
    st.builds(EvaluationReply, step=STEPS, verdict=st.sampled_from(Verdict)),
    st.builds(SessionFinished),
    st.builds(Farewell),
    st.builds(
        EmbeddingServerHello,
        version=STEPS,
        contract=st.text(),
        session=st.text(),
        snapshot=st.text(),
    ),
    st.builds(
        EmbeddingClientHello, version=STEPS, contract=st.text(), session=st.text(), stage=STEPS
    ),
    st.builds(EmbeddingQuery, number=STEPS, ids=TEXTS),
    st.builds(
        QueryAnswer,
        number=STEPS,
        epsilon=NUMBERS,
        delta=NUMBERS,
        spent_epsilon=NUMBERS,
        left_epsilon=NUMBERS,
        ids_digest=st.binary(max_size=20),
        unknown=TEXTS,
        values=TENSORS,
    ),
)


def same(first: Message, second: Message) -> bool:
    return type(first) is type(second) and all(
        np.array_equal(value, getattr(second, name)) for name, value in vars(first).items()
    )


@given(MESSAGES)
def test_round_trip(message: Message) -> None:
    assert same(decode(encode(message)), message)


@given(MESSAGES, st.data())
def test_truncated_and_extended_frames_are_refused(message: Message, data: st.DataObject) -> None:
    frame = encode(message)
    cut = data.draw(st.integers(0, len(frame) - 1))
    for broken in (frame[:cut], frame + b"\0"):
        with pytest.raises(RemoteProtocolError):
            decode(broken)


@given(MESSAGES, st.data())
def test_a_flipped_byte_is_an_error_or_another_message_never_a_crash(
    message: Message, data: st.DataObject
) -> None:
    frame = bytearray(encode(message))
    at = data.draw(st.integers(0, len(frame) - 1))
    frame[at] ^= data.draw(st.integers(1, 255))
    try:
        decode(bytes(frame))
    except RemoteProtocolError:
        return


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(noise: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode(noise)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_tensors_that_are_not_finite_are_refused(bad: float) -> None:
    frame = encode(Gradients(step=1, values=np.array([[[bad]]], dtype=np.float32)))
    with pytest.raises(RemoteProtocolError, match="NaN or infinite"):
        decode(frame)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(bad: float) -> None:
    frame = encode(QueryAnswer(1, 1.0, 1e-5, bad, 0.0, b"d", (), np.ones((1, 2, 3), "f4")))
    with pytest.raises(RemoteProtocolError, match="NaN or infinite"):
        decode(frame)


def test_sizes_do_not_depend_on_values() -> None:
    one = Embeddings(
        step=1, purpose=Purpose.TRAIN, roots_digest=b"d" * 16, values=np.zeros((5, 2, 3), "f4")
    )
    other = Embeddings(
        step=2, purpose=Purpose.TRAIN, roots_digest=b"e" * 16, values=np.ones((5, 2, 3), "f4")
    )
    assert len(encode(one)) == len(encode(other))


def test_the_set_is_closed() -> None:
    assert set(KINDS) == set(Message.__args__)
