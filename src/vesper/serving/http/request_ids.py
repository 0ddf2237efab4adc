"""Parser of the ids in a request of `vesper serve`.

Clients send {"ids": ["u1", 7]}, which is not trusted. Ids are integers or text and are compared as
text, so 7 and "7" are one node.
"""

import json
from dataclasses import dataclass
from typing import Any, NoReturn

from vesper.errors import first_three

MAX_IDS = 10_000
"""Most ids in a request."""
MAX_ID_LENGTH = 256
MIN_ID_NUMBER, MAX_ID_NUMBER = -(2**63), 2**63 - 1

Id = str | int


@dataclass
class BadRequestError(Exception):
    """A mistake of the client: status, what is wrong, what to do."""

    status: int
    error: str
    what_to_do: str


def parse_ids(body: bytes) -> list[Id]:
    """Parse the ids of a request; they keep their types.

    Raises:
        BadRequestError: the body is anything but an object with a list of ids.
    """
    try:
        request = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(
            400, f"expected JSON, got something else ({_short(error)})", EXAMPLE
        ) from None
    if (
        not isinstance(request, dict)
        or set(request) != {"ids"}
        or not isinstance(request["ids"], list)
    ):
        raise BadRequestError(
            400, 'expected an object with "ids", a list, and nothing else', EXAMPLE
        )
    ids = request["ids"]
    if not 1 <= len(ids) <= MAX_IDS:
        raise BadRequestError(
            400,
            f"expected 1 to {MAX_IDS} ids, got {len(ids)}",
            "send several requests, or use `vesper predict` for a whole file",
        )
    wrong = [each for each in ids if not _is_id(each)]
    if wrong:
        raise BadRequestError(
            400,
            f"expected ids that are text of 1 to {MAX_ID_LENGTH} characters or 64-bit integers; "
            f"{len(wrong)} are not ({first_three(json.dumps(each)[:40] for each in wrong)})",
            EXAMPLE,
        )
    return ids


EXAMPLE = 'send {"ids": ["u1", "u2"]} as application/json'


def _is_id(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return MIN_ID_NUMBER <= value <= MAX_ID_NUMBER
    return isinstance(value, str) and 1 <= len(value) <= MAX_ID_LENGTH and _is_utf8(value)


def _is_utf8(text: str) -> bool:
    """Whether text can be encoded: JSON can hold half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _short(error: Exception) -> str:
    return str(error)[:80] if not isinstance(error, RecursionError) else "too many brackets"
