"""Signed facts: one JSON object whose `signature` covers everything else in it.

    signed bytes = CONTEXT + canonical JSON of all but the signature      (sorted keys, no spaces)
    signature    = Ed25519(signing key, signed bytes),   public key inside the signed part

The signature shows that whoever holds the secret key wrote the facts. Whose key that is the file
cannot show: the public key must have come by another way.
"""

import json
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from vesper.errors import InputError, VesperError

CONTEXT = b"vesper signed statement 1\n"
"""So that nothing else that is ever signed with the key can pass for a statement."""

KEY_DIGITS, SIGNATURE_DIGITS = 64, 128


def signed(facts: Mapping[str, Any], *, signing_key: bytes) -> str:
    """Add public key and signature to the facts; give the JSON text.

    Raises:
        ValueError: a number is infinite or NaN, which JSON does not have.
    """
    key = Ed25519PrivateKey.from_private_bytes(signing_key)
    whole = {**facts, "public_key": key.public_key().public_bytes_raw().hex()}
    signature = key.sign(_covered(whole)).hex()
    return json.dumps({**whole, "signature": signature}, indent=2, allow_nan=False) + "\n"


def checked(text: str, *, public_key: str | None = None) -> dict[str, Any]:
    """Give the facts of a signed text, without its signature.

    Args:
        text: what `signed` made.
        public_key: the key that must have signed, as noted elsewhere; None: the one in the text,
            which then proves only that nothing was changed by those who lack its secret.

    Raises:
        InputError: the text is no signed statement, or the public key is no key.
        VesperError: it was changed, or another key has signed it.
    """
    facts = _parsed(text)
    signature = _bytes(facts.pop("signature", None), SIGNATURE_DIGITS, "signature")
    held = _bytes(facts.get("public_key"), KEY_DIGITS, "public_key")
    if public_key is not None and _bytes(public_key, KEY_DIGITS, "--public-key") != held:
        raise VesperError(
            f"the statement is signed with another key: expected {public_key.lower()}, found "
            f"{held.hex()}; do not trust the file"
        )
    try:
        Ed25519PublicKey.from_public_bytes(held).verify(signature, _covered(facts))
    except (InvalidSignature, ValueError):
        raise VesperError(
            "the signature does not fit the statement: it was changed after it was signed; ask "
            "the data party for it again"
        ) from None
    return facts


def _covered(facts: Mapping[str, Any]) -> bytes:
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return CONTEXT + text.encode()


def _parsed(text: str) -> dict[str, Any]:
    try:
        facts = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"expected a signed statement in JSON, found none ({error})") from None
    if not isinstance(facts, dict):
        raise InputError("expected a signed statement, found JSON that is no object")
    return facts


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two readers might take different ones of two equal keys: refuse them."""
    facts = dict(pairs)
    if len(facts) != len(pairs):
        raise ValueError("a key stands in it twice")
    return facts


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _bytes(value: object, digits: int, name: str) -> bytes:
    if isinstance(value, str) and len(value) == digits:
        try:
            return bytes.fromhex(value)
        except ValueError:
            pass
    raise InputError(f"{name}: expected {digits} hexadecimal digits, found {value!r}")
