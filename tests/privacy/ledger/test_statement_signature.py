"""Signed facts are read back as they were signed; anything else is refused."""

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from vesper.errors import InputError, VesperError
from vesper.privacy.ledger.statement import sign_facts, verify_facts

KEY, OTHER = bytes(range(32)), bytes(32)
FACTS = {"epsilon": 0.1, "releases": [{"noise_std": 1e-3}], "name": "gräph", "none": None}


def public(key: bytes) -> str:
    return Ed25519PrivateKey.from_private_bytes(key).public_key().public_bytes_raw().hex()


def test_signed_facts_are_read_back() -> None:
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
def test_every_change_is_detected(change: dict[str, object]) -> None:
    facts = json.loads(sign_facts(FACTS, signing_key=KEY))
    with pytest.raises(VesperError, match="does not match the statement"):
        verify_facts(json.dumps(facts | change))


def test_a_removed_field_is_detected() -> None:
    facts = json.loads(sign_facts(FACTS, signing_key=KEY))
    del facts["none"]
    with pytest.raises(VesperError, match="does not match the statement"):
        verify_facts(json.dumps(facts))


def test_only_a_noted_key_reveals_a_statement_signed_by_someone_else() -> None:
    forged = sign_facts(FACTS | {"epsilon": 0.01}, signing_key=OTHER)
    assert verify_facts(forged)["epsilon"] == 0.01
    with pytest.raises(VesperError, match="another key"):
        verify_facts(forged, public_key=public(KEY))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found none"),
        ("[]", "not an object"),
        ("{}", "signature: expected 128"),
        ('{"signature": 7}', "signature: expected 128"),
        ('{"signature": "' + "g" * 128 + '"}', "signature: expected 128"),
        ('{"signature": "' + "a" * 128 + '"}', "public_key: expected 64"),
        ('{"a": 1, "a": 2}', "a key occurs twice"),
        ('{"a": NaN}', "NaN is not valid JSON"),
        ("[" * 100_000, "found none"),
    ],
)
def test_text_that_is_not_a_statement_is_wrong_input(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        verify_facts(text)


def test_an_invalid_public_key_is_wrong_input() -> None:
    with pytest.raises(InputError, match="--public-key: expected 64 hexadecimal digits"):
        verify_facts(sign_facts(FACTS, signing_key=KEY), public_key="abc")


def test_infinite_numbers_are_not_signed() -> None:
    with pytest.raises(ValueError, match="JSON"):
        sign_facts({"epsilon": float("inf")}, signing_key=KEY)
