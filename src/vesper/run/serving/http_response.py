"""What is answered over HTTP, before it becomes bytes on a socket."""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

JSON = "application/json"


@dataclass(frozen=True)
class Response:
    """Status and content."""

    status: int
    content: bytes
    kind: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


class Responder(Protocol):
    """Answers requests from any thread."""

    def respond(self, method: str, path: str, kind: str, body: bytes) -> Response:
        """Answer one request; never raises."""


def json_response(status: int, facts: Mapping[str, Any]) -> Response:
    """Write JSON; predictions are finite, so no number is without a way to write it."""
    return Response(status, json.dumps(facts, allow_nan=False).encode())


def error_response(status: int, error: str, what_to_do: str) -> Response:
    """Say what is wrong and what to do, and nothing else."""
    return json_response(status, {"error": error, "what_to_do": what_to_do})


def page_response(page: str, *, policy: str) -> Response:
    """A page for people, and what the browser may do with it."""
    headers = {"Content-Security-Policy": policy}
    return Response(200, page.encode(), kind="text/html; charset=utf-8", headers=headers)


def policy_of(*, script: str, style: str) -> str:
    """Let the browser run this script and this style, ask this server, and load nothing else."""
    return (
        f"default-src 'none'; connect-src 'self'; script-src {_hash_of(script)}; "
        f"style-src {_hash_of(style)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
