"""What `vesper serve` answers, request by request. No sockets in here.

| request | answer |
| --- | --- |
| POST /predict | predictions by id, the budget; 403 refused, 503 the data party is away |
| GET /budget | what is spent and left of the graph's budget |
| GET /health | whether the data party is there |
| GET /openapi.json, GET / | the interface, for programs and for people |

With 403 and 503 come those predictions that the cache has. Errors are {"error", "what_to_do"}.
"""

import re
from collections.abc import Callable
from typing import Any

from vesper.errors import InputError, PeerError, VesperError
from vesper.serving.http.openapi import POLICY, openapi_of, page_of
from vesper.serving.http.server import (
    BadRequest,
    HttpResponse,
    Id,
    error_response,
    json_response,
    page_response,
    parse_ids,
)
from vesper.serving.predictor import QUICK_TIMEOUT, NodePredictor, Predictions

UNREACHABLE_ADVICE = "start `vesper party data --config FILE --answer` there, then ask again"
REFUSED_ADVICE = "nothing more can be released of this graph; ask about a new snapshot"
_JSON_TYPE = re.compile(r"application/json\s*(;.*)?", re.IGNORECASE)


class Service:
    """Answers requests from any thread.

    Args:
        predictor: of the label party.
        peer: the data party, for people.
        failed: is told of a failure of ours, which clients are not.
    """

    def __init__(
        self, predictor: NodePredictor, *, peer: str, failed: Callable[[Exception], None]
    ) -> None:
        self._predictor, self._peer, self._failed = predictor, peer, failed
        self._routes: dict[str, tuple[str, Callable[[bytes], HttpResponse]]] = {
            "/predict": ("POST", self._predict),
            "/budget": ("GET", lambda _: self._budget()),
            "/health": ("GET", lambda _: self._health()),
            "/openapi.json": ("GET", lambda _: json_response(200, openapi_of(predictor))),
            "/": ("GET", lambda _: _page(predictor, peer)),
        }

    def respond(self, method: str, path: str, kind: str, body: bytes) -> HttpResponse:
        """Answer one request; never raises.

        Args:
            method: GET, POST, ..
            path: without the host; what comes after `?` is not looked at.
            kind: the content type.
            body: what was sent.
        """
        try:
            return self._routed(method, path.partition("?")[0], kind, body)
        except BadRequest as error:
            return error_response(error.status, error.error, error.what_to_do)
        except (PeerError, InputError) as error:
            return error_response(502, str(error), f"see what `{self._peer}` says")
        except VesperError as error:
            return error_response(500, str(error), "see the terminal of `vesper serve`")
        except Exception as error:  # a bug of ours: for our eyes, not for clients
            self._failed(error)
            return error_response(500, "internal error", "see the terminal of `vesper serve`")

    def _routed(self, method: str, path: str, kind: str, body: bytes) -> HttpResponse:
        if path not in self._routes:
            raise BadRequest(404, "no such page", f"there is {', '.join(self._routes)}")
        allowed, answer = self._routes[path]
        if method != allowed and not (method == "HEAD" and allowed == "GET"):
            response = error_response(405, f"expected {allowed}", f"use {allowed} {path}")
            return HttpResponse(405, response.content, headers={"Allow": allowed})
        if allowed == "POST" and not _JSON_TYPE.fullmatch(kind):
            raise BadRequest(415, "expected JSON", "send Content-Type: application/json")
        return answer(body)

    def _predict(self, body: bytes) -> HttpResponse:
        ids = parse_ids(body)
        found = self._predictor.predict([str(each) for each in ids], limit=QUICK_TIMEOUT)
        facts: dict[str, Any] = {
            "predictions": [self._prediction(each, found) for each in ids],
            "budget": found.budget,
        }
        if found.refusal is not None:
            facts |= {"error": found.refusal, "what_to_do": REFUSED_ADVICE}
            return json_response(403, facts)
        if found.unreachable is not None and any(_is_unanswered(str(each), found) for each in ids):
            return self._away(found.unreachable, facts)
        return json_response(200, facts)

    def _prediction(self, given: Id, found: Predictions) -> dict[str, Any]:
        text = str(given)
        if text in found.unknown:
            return {"id": given, "error": "no node of this graph", "snapshot": found.snapshot}
        if text not in found.values:
            return {"id": given, "error": "not answered"}
        values = found.values[text].tolist()
        classes = self._predictor.run.calibration.classes
        values_by_name: dict[str, Any] = (
            {"probabilities": dict(zip(map(str, classes), values, strict=True))}
            if classes
            else {"score": values[0]}
        )
        return {
            "id": given,
            **values_by_name,
            "snapshot": found.snapshot,
            "cached": text in found.cached,
        }

    def _budget(self) -> HttpResponse:
        away = self._predictor.refresh_budget(limit=QUICK_TIMEOUT)
        facts = {"snapshot": self._predictor.snapshot, "budget": self._predictor.budget()}
        return json_response(200, facts) if away is None else self._away(away, facts)

    def _health(self) -> HttpResponse:
        away = self._predictor.refresh_budget(limit=0.0)
        facts = {
            "status": "ok" if away is None else "waiting",
            "data_party": self._peer,
            "snapshot": self._predictor.snapshot,
        }
        return json_response(200, facts if away is None else facts | {"waiting": away})

    def _away(self, away: str, facts: dict[str, Any]) -> HttpResponse:
        facts = {
            "error": away,
            "what_to_do": UNREACHABLE_ADVICE,
            "waiting_for": self._peer,
            **facts,
        }
        response = json_response(503, facts)
        return HttpResponse(503, response.content, headers={"Retry-After": "5"})


def _is_unanswered(text: str, found: Predictions) -> bool:
    return text not in found.values and text not in found.unknown


def _page(predictor: NodePredictor, peer: str) -> HttpResponse:
    return page_response(page_of(predictor, peer=peer), policy=POLICY)
