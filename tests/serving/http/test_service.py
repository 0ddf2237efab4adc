"""Requests and responses, without sockets: statuses, partial answers, errors without details."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vesper.deployment.saved_run import SavedLabelRun, read_saved_label_run
from vesper.errors import PeerLostError, RemoteProtocolError
from vesper.serving.embedding_cache import EmbeddingCache
from vesper.serving.embedding_client import EmbeddingClient, SnapshotReply
from vesper.serving.http.server import HttpResponse
from vesper.serving.http.service import Service
from vesper.serving.predictor import PeerPredictor

if TYPE_CHECKING:
    from tests.fixtures.finished_run import FinishedRun, Train

KIND = "application/json"


def service_of(predictor: PeerPredictor, failures: list[Exception] | None = None) -> Service:
    return Service(predictor, peer="platform", failed=(failures or []).append)


def predict(service: Service, *ids: object) -> tuple[int, dict[str, Any]]:
    body = json.dumps({"ids": ids}).encode()
    return read(service.respond("POST", "/predict", KIND, body))


def read(response: HttpResponse) -> tuple[int, dict[str, Any]]:
    return response.status, json.loads(response.content)


class ScriptedClient(EmbeddingClient):
    """A client with prescribed replies."""

    def __init__(self, run: SavedLabelRun, script: Callable[..., Any]) -> None:
        super().__init__(lambda limit: pytest.fail("nobody connects"), run, peer="platform")
        self._script = script

    def query(self, ids: tuple[str, ...], *, limit: float | None) -> SnapshotReply:
        reply: SnapshotReply = self._script(ids, limit)
        return reply


def with_client(finished: "FinishedRun", script: Callable[..., Any]) -> PeerPredictor:
    run = read_saved_label_run(finished.label)
    client = ScriptedClient(run, script)
    return PeerPredictor(
        run, client, EmbeddingCache(finished.label.party.state / "cache"), peer="platform"
    )


def unreachable(*_: Any, **__: Any) -> Any:
    raise PeerLostError("platform is not there")


def test_predictions_by_id_with_the_budget(finished: "FinishedRun") -> None:
    with finished.open_predictor() as predictor:
        service = service_of(predictor)
        status, content = predict(service, "u05", "nobody", "u05")
        assert status == 200
        first, unknown, again = content["predictions"]
        assert first == again
        assert sum(first["probabilities"].values()) == pytest.approx(1.0)
        assert set(first["probabilities"]) == {"0", "1"}
        assert first["cached"] is False
        assert first["snapshot"] == predictor.snapshot
        assert unknown["error"] == "no node of this graph"
        assert content["budget"]["epsilon"] == 8.0
        assert predict(service, "u05")[1]["predictions"][0]["cached"] is True
        assert read(service.respond("GET", "/budget", "", b""))[1]["budget"] == content["budget"]
        assert read(service.respond("GET", "/health?now", "", b""))[1]["status"] == "ok"


def test_numbers_have_a_score(train: "Train") -> None:
    with train("numbers").open_predictor() as predictor:
        prediction = predict(service_of(predictor), "u05")[1]["predictions"][0]
    assert isinstance(prediction["score"], float)
    assert "probabilities" not in prediction


def test_a_new_snapshot_is_charged_once_at_the_first_query(finished: "FinishedRun") -> None:
    with finished.open_predictor(snapshot=finished.snapshot(), stage=1) as predictor:
        service = service_of(predictor)
        before = read(service.respond("GET", "/budget", "", b""))[1]["budget"]
        assert before["spent_epsilon"] == 0.0
        spent = [predict(service, text)[1]["budget"]["spent_epsilon"] for text in ("v1", "v2")]
    assert spent[0] == spent[1] > 0


def test_while_the_data_party_is_unreachable_the_cache_is_used(finished: "FinishedRun") -> None:
    with finished.open_predictor() as predictor:
        predict(service_of(predictor), "u05")
    service = service_of(with_client(finished, unreachable))
    status, content = predict(service, "u05")
    assert (status, content["predictions"][0]["cached"]) == (200, True)
    response = service.respond("POST", "/predict", KIND, b'{"ids": ["u05", "u06"]}')
    status, content = read(response)
    assert status == 503
    assert "waiting for platform" in content["error"]
    assert "--answer" in content["what_to_do"]
    assert content["waiting_for"] == "platform"
    assert "probabilities" in content["predictions"][0]
    assert content["predictions"][1] == {"id": "u06", "error": "not answered"}
    assert response.headers["Retry-After"]
    assert service.respond("GET", "/budget", "", b"").status == 503
    status, content = read(service.respond("GET", "/health", "", b""))
    assert (status, content["status"]) == (200, "waiting")


def test_mistakes_of_the_peer_are_shown_and_internal_errors_are_not(
    finished: "FinishedRun",
) -> None:
    def wrong(*_: Any, **__: Any) -> Any:
        raise RemoteProtocolError("platform sent nonsense")

    assert predict(service_of(with_client(finished, wrong)), "u05")[0] == 502

    def bug(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("secret detail")

    failures: list[Exception] = []
    service = Service(with_client(finished, bug), peer="platform", failed=failures.append)
    status, content = predict(service, "u05")
    assert status == 500
    assert "secret" not in json.dumps(content)
    assert isinstance(failures[0], ZeroDivisionError)


@pytest.mark.parametrize(
    ("method", "path", "kind", "body", "status"),
    [
        ("GET", "/nothing", "", b"", 404),
        ("GET", "/predict", "", b"", 405),
        ("DELETE", "/budget", "", b"", 405),
        ("OPTIONS", "/predict", "", b"", 405),
        ("TRACE", "/health", "", b"", 405),
        ("HEAD", "/health", "", b"", 200),
        ("POST", "/predict", "text/plain", b'{"ids": ["a"]}', 415),
        ("POST", "/predict", "", b'{"ids": ["a"]}', 415),
        ("POST", "/predict", KIND, b"{}", 400),
        ("POST", "/predict", "Application/JSON; charset=utf-8", b"{}", 400),
    ],
)
def test_wrong_requests(
    finished: "FinishedRun", method: str, path: str, kind: str, body: bytes, status: int
) -> None:
    service = service_of(with_client(finished, unreachable))
    response = service.respond(method, path, kind, body)
    assert response.status == status
    if status != 200:
        assert set(read(response)[1]) == {"error", "what_to_do"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["GET", "POST", "PUT", "", "\0"]),
    st.sampled_from(["/predict", "/budget", "/", "/openapi.json"]) | st.text(max_size=8),
    st.just(KIND) | st.text(max_size=8),
    st.binary(max_size=20) | st.just(b'{"ids": ["u05"]}'),
)
def test_any_request_gets_a_response(
    finished: "FinishedRun", method: str, path: str, kind: str, body: bytes
) -> None:
    failures: list[Exception] = []
    predictor = with_client(finished, unreachable)
    response = Service(predictor, peer="platform", failed=failures.append).respond(
        method, path, kind, body
    )
    assert 200 <= response.status < 504
    assert failures == []
    if response.status >= 400:
        assert {"error", "what_to_do"} <= set(read(response)[1])


def test_the_interface_is_described_and_the_page_loads_nothing(finished: "FinishedRun") -> None:
    service = service_of(with_client(finished, unreachable))
    described = read(service.respond("GET", "/openapi.json", "", b""))[1]
    assert described["openapi"].startswith("3.1")
    assert set(described["paths"]) == {"/predict", "/budget", "/health"}
    assert "403" not in described["paths"]["/predict"]["post"]["responses"]
    predictions = described["components"]["schemas"]["Predictions"]["properties"]["predictions"]
    probabilities = predictions["items"]["properties"]["probabilities"]
    predict_responses = described["paths"]["/predict"]["post"]["responses"]
    assert {"400", "411", "413", "415", "500", "502", "503"} < set(predict_responses)
    text, number = predictions["items"]["properties"]["id"]["anyOf"]
    assert (text["minLength"], text["maxLength"]) == (1, 256)
    assert (number["minimum"], number["maximum"]) == (-(2**63), 2**63 - 1)
    assert set(probabilities["properties"]) == {"0", "1"}
    response = service.respond("GET", "/", "", b"")
    page = response.content.decode()
    assert response.kind.startswith("text/html")
    assert "http://" not in page
    assert "https://" not in page
    assert "platform" in page
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_names_of_classes_cannot_break_the_page(finished: "FinishedRun") -> None:
    from dataclasses import replace

    predictor = with_client(finished, unreachable)
    calibration = replace(predictor.run.calibration, classes=("<script>", "b"))
    predictor.run = replace(predictor.run, calibration=calibration)
    page = Service(predictor, peer="<b>", failed=print).respond("GET", "/", "", b"").content
    assert b"(<script>" not in page
    assert b"<b><b>" not in page


def test_the_page_is_readable_in_dark_mode_and_shows_a_table(finished: "FinishedRun") -> None:
    service = service_of(with_client(finished, unreachable))
    page = service.respond("GET", "/", "", b"").content.decode()
    assert "color-scheme: light dark" in page, "also form fields are dark"
    assert "prefers-color-scheme: dark" in page
    assert "insertRow" in page
    assert "innerHTML" not in page, "what a server sends is text, never markup"
