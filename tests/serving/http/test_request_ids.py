"""Whatever a client sends is parsed as a list of ids or refused with a status; never a crash."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.serving.http.request_ids import MAX_ID_LENGTH, MAX_IDS, BadRequestError, parse_ids

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["ids", "\ud800", 2**63, -(2**63)]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3) | st.just("ids"), inner, max_size=3)
    ),
    max_leaves=8,
)


def check(body: bytes) -> None:
    problem = None
    try:
        ids = parse_ids(body)
    except BadRequestError as error:
        problem = error
    if problem is not None:
        assert problem.status == 400
        assert problem.error
        assert problem.what_to_do
        return
    assert 1 <= len(ids) <= MAX_IDS
    for each in ids:
        assert str(each).encode()
        assert not isinstance(each, bool)


@given(st.binary(max_size=60))
def test_bytes(body: bytes) -> None:
    check(body)


@given(JSON)
def test_any_json(value: Any) -> None:
    check(json.dumps(value).encode())


@given(st.lists(JSON, max_size=3))
def test_any_ids(values: list[Any]) -> None:
    check(json.dumps({"ids": values}).encode())


@given(st.lists(st.text(min_size=1, max_size=9) | st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_ids_keep_their_types(ids: list[str | int]) -> None:
    assert parse_ids(json.dumps({"ids": ids}).encode()) == ids


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"ids": [' + b"9" * 10_000 + b"]}",
        b'{"ids": [NaN]}',
        b'{"ids": ["\\ud800"]}',
        b'{"ids": [true]}',
        b'{"ids": [1.5]}',
        b'{"ids": []}',
        b'{"ids": ["a"], "more": 1}',
        json.dumps({"ids": ["x" * (MAX_ID_LENGTH + 1)]}).encode(),
        json.dumps({"ids": [1] * (MAX_IDS + 1)}).encode(),
        b"\xff\xfe\x00",
        b"",
    ],
    ids=lambda body: repr(body[:24]),
)
def test_these_are_refused(body: bytes) -> None:
    with pytest.raises(BadRequestError):
        parse_ids(body)
