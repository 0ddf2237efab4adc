"""Signed facts: what was signed is read back, anything else is refused."""

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from vesper.errors import InputError, VesperError
from vesper.privacy.ledger.statement import sign_facts, verify_facts

KEY, OTHER = bytes(range(32)), bytes(32)
FACTS = {"epsilon": 0.1, "releases": [{"noise_std": 1e-3}], "name": "gräph", "none": None}


def public(key: bytes) -> str:
    return Ed25519PrivateKey.from_private_bytes(key).public_key().public_bytes_raw().hex()


def test_what_was_signed_is_read_back() -> None:
    text = sign_facts(FACTS, signing_key=KEY)
    assert verify_facts(text) == {**FACTS, "public_key": public(KEY)}
    assert verify_facts(text, public_key=public(KEY).upper()) == verify_facts(text)


def test_layout_does_not_matter() -> None:
    facts = json.loads(sign_facts(FACTS, signing_key=KEY))
    assert verify_facts(json.dumps(dict(reversed(facts.items())))) == verify_facts(
        json.dumps(facts)
    )


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.2},
        {"epsilon": "0.1"},
        {"releases": []},
        {"more": 1},
        {"public_key": public(OTHER)},
        {"signature": "0" * 128},
    ],
)
def test_every_change_is_found(change: dict[str, object]) -> None:
    facts = json.loads(sign_facts(FACTS, signing_key=KEY))
    with pytest.raises(VesperError, match="does not fit the statement"):
        verify_facts(json.dumps(facts | change))


def test_a_field_taken_away_is_found() -> None:
    facts = json.loads(sign_facts(FACTS, signing_key=KEY))
    del facts["none"]
    with pytest.raises(VesperError, match="does not fit the statement"):
        verify_facts(json.dumps(facts))


def test_signed_anew_by_somebody_else_only_a_noted_key_shows_it() -> None:
    forged = sign_facts(FACTS | {"epsilon": 0.01}, signing_key=OTHER)
    assert verify_facts(forged)["epsilon"] == 0.01
    with pytest.raises(VesperError, match="another key"):
        verify_facts(forged, public_key=public(KEY))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found none"),
        ("[]", "no object"),
        ("{}", "signature: expected 128"),
        ('{"signature": 7}', "signature: expected 128"),
        ('{"signature": "' + "g" * 128 + '"}', "signature: expected 128"),
        ('{"signature": "' + "a" * 128 + '"}', "public_key: expected 64"),
        ('{"a": 1, "a": 2}', "twice"),
        ('{"a": NaN}', "NaN is no JSON"),
        ("[" * 100_000, "found none"),
    ],
)
def test_what_is_no_statement_is_wrong_input(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        verify_facts(text)


def test_a_key_that_is_none_is_wrong_input() -> None:
    with pytest.raises(InputError, match="--public-key: expected 64 hexadecimal digits"):
        verify_facts(sign_facts(FACTS, signing_key=KEY), public_key="abc")


def test_numbers_that_json_has_not_are_not_signed() -> None:
    with pytest.raises(ValueError, match="JSON"):
        sign_facts({"epsilon": float("inf")}, signing_key=KEY)
