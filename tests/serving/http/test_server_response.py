"""Responses before they are bytes: JSON with finite numbers, pages that may run one script."""

import base64
import hashlib
import json

import pytest

from vesper.serving.http.server import error_response, json_response, page_response, policy_of


def test_json_has_only_finite_numbers() -> None:
    assert json.loads(json_response(200, {"a": 1.5}).content) == {"a": 1.5}
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_response(200, {"a": float("nan")})


def test_errors_say_what_to_do() -> None:
    response = error_response(404, "no such page", "go home")
    assert response.status == 404
    assert json.loads(response.content) == {"error": "no such page", "what_to_do": "go home"}


def test_a_page_may_run_its_own_script_and_load_nothing() -> None:
    policy = policy_of(script="run()", style="p {}")
    expected = base64.b64encode(hashlib.sha256(b"run()").digest()).decode()
    assert f"script-src 'sha256-{expected}'" in policy
    assert policy.startswith("default-src 'none'")
    response = page_response("<p>", policy=policy)
    assert response.headers == {"Content-Security-Policy": policy}
    assert response.kind.startswith("text/html")
