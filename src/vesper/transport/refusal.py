"""Refusal: why a listener does not accept a connection, a word of a closed list.

| word | what the connecting end does |
| --- | --- |
| OTHER_NAME, REVOKED | ends, if it has had no connection before: a person must act first |
| FAILED | tries again |

As with close reasons, nothing else crosses: names and errors stay on the machine where they are.
`problem_of` turns a failed connection, refused or not, into an error for the people on this side.
"""

from enum import StrEnum
from typing import Any

import grpc

from vesper.errors import PeerError, PeerLostError


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


def problem_of(error: Any, peer: str) -> PeerError:
    """Turn an error into one that says whether retrying can help: `PeerLostError` if it can."""
    if not isinstance(error, grpc.Call):  # the listening end gets no reason
        return PeerLostError(f"the connection to {peer} was lost")
    details = str(error.details() or "")
    if error.code() is grpc.StatusCode.PERMISSION_DENIED:
        return PeerError(f"{peer} refused us: {meaning_of(details)}")
    for sign, meaning in _TLS_PROBLEMS.items():
        if sign in details:
            return PeerError(f"{peer}: {meaning} ({sign})")
    return PeerLostError(f"the connection to {peer} was lost ({details.strip() or error.code()})")


_TLS_PROBLEMS = {
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not from the authority in [tls], or expired",
    "certificate signature failure": "its certificate is not from the authority in [tls]",
    "Hostname Verification Check failed": "its certificate carries a name other than `peer`",
    "CERTIFICATE_REQUIRED": "it requires a certificate and got none",
    "UNKNOWN_CA": "it does not trust the authority of our certificate",
    "CERTIFICATE_EXPIRED": "our certificate has expired",
    "WRONG_VERSION_NUMBER": "something other than vesper listens there",
    "SSL_ERROR_SSL": "one of the two sides could not prove its identity; run `vesper preflight`",
}
