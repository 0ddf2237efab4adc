"""What a client of `vesper serve` may send, read with suspicion: {"ids": ["u1", 7]}.

Ids are whole numbers or text; both are known by their text, so 7 and "7" are one node.
"""

import json
from dataclasses import dataclass
from typing import Any, NoReturn

from vesper.errors import first_three

MOST_BYTES = 1 << 20
"""Of a request."""
MOST_IDS = 10_000
"""In a request."""
LONGEST_ID = 256

Id = str | int


@dataclass
class BadRequest(Exception):
    """The client's mistake: status, what is wrong, what to do."""

    status: int
    error: str
    what_to_do: str


def ids_in(body: bytes) -> list[Id]:
    """Read the ids of a request, as they were given.

    Raises:
        BadRequest: it is something else.
    """
    try:
        asked = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadRequest(
            400, f"expected JSON, got something else ({_short(error)})", EXAMPLE
        ) from None
    if not isinstance(asked, dict) or set(asked) != {"ids"} or not isinstance(asked["ids"], list):
        raise BadRequest(400, 'expected an object with "ids", a list, and nothing else', EXAMPLE)
    ids = asked["ids"]
    if not 1 <= len(ids) <= MOST_IDS:
        raise BadRequest(
            400,
            f"expected 1 to {MOST_IDS} ids, got {len(ids)}",
            "send several requests, or use `vesper predict` for a whole file",
        )
    wrong = [each for each in ids if not _is_id(each)]
    if wrong:
        raise BadRequest(
            400,
            f"expected ids that are text of 1 to {LONGEST_ID} characters, or whole numbers of 64 "
            f"bits; {len(wrong)} are not ({first_three(json.dumps(each)[:40] for each in wrong)})",
            EXAMPLE,
        )
    return ids


EXAMPLE = 'send {"ids": ["u1", "u2"]} as application/json'


def _is_id(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return isinstance(value, str) and 1 <= len(value) <= LONGEST_ID and _is_utf8(value)


def _is_utf8(text: str) -> bool:
    """JSON can write half of a character, which no text has."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _short(error: Exception) -> str:
    return str(error)[:80] if not isinstance(error, RecursionError) else "too many brackets"
