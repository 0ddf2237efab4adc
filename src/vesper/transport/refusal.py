"""Refusal: why a listener does not accept a connection, a word of a closed list.

| word | what the connecting end does |
| --- | --- |
| OTHER_NAME, REVOKED | ends, if it has had no connection before: a person must act first |
| FAILED | tries again |

As with close reasons, nothing else crosses: names and errors stay on the machine where they are.
"""

from enum import StrEnum


class Refusal(StrEnum):
    """The words, as they are sent."""

    OTHER_NAME = "other-name"
    REVOKED = "revoked"
    FAILED = "failed"


_MEANING = {
    Refusal.OTHER_NAME: "it expects a party of another name; compare party.name here with "
    "party.peer there",
    Refusal.REVOKED: "our certificate is on its list of revoked ones; request a new one",
    Refusal.FAILED: "it could not check our certificate; see the error on its side",
}


def meaning_of(word: str) -> str:
    """Explain a word that a listener has sent, in words of this side only."""
    known = {str(each): text for each, text in _MEANING.items()}
    return known.get(word, "it gave no known reason; see the error on its side")
