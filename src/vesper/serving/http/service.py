"""HTTP responses of `vesper serve`, by request. No sockets in here.

| request | response |
| --- | --- |
| POST /predict | predictions by id, the budget; 503 the data party is unreachable |
| GET /budget | what is spent and left of the graph's budget |
| GET /health | whether the data party is reachable |
| GET /openapi.json, GET / | the interface, for programs and for people |

503 comes with the predictions that the cache has. Errors are {"error", "what_to_do"}.
"""

import re
from collections.abc import Callable
from typing import Any

from vesper.errors import InputError, PeerError, VesperError
from vesper.serving.http.openapi import openapi_of
from vesper.serving.http.request_ids import BadRequestError, Id, parse_ids
from vesper.serving.http.server import HttpResponse, error_response, json_response, page_response
from vesper.serving.http.service_page import POLICY, page_of
from vesper.serving.predictor import QUICK_TIMEOUT, NodePredictor, Predictions

UNREACHABLE_ADVICE = "start `vesper party data --config FILE --answer` there, then try again"
_JSON_TYPE = re.compile(r"application/json\s*(;.*)?", re.IGNORECASE)


class Service:
    """Responds to requests, from any thread.

    Args:
        predictor: of the label party.
        peer: name of the data party, for people.
        failed: called with an internal error, whose details clients do not see.
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
        """Respond to one request; never raises.

        Args:
            method: GET, POST, ..
            path: without the host; the part after `?` is ignored.
            kind: the content type.
            body: of the request.
        """
        try:
            return self._route(method, path.partition("?")[0], kind, body)
        except BadRequestError as error:
            return error_response(error.status, error.error, error.what_to_do)
        except (PeerError, InputError) as error:
            return error_response(502, str(error), f"check the terminal of `{self._peer}`")
        except VesperError as error:
            return error_response(500, str(error), "see the terminal of `vesper serve`")
        except Exception as error:  # a bug: details go to the terminal, not to clients
            self._failed(error)
            return error_response(500, "internal error", "see the terminal of `vesper serve`")

    def _route(self, method: str, path: str, kind: str, body: bytes) -> HttpResponse:
        if path not in self._routes:
            raise BadRequestError(404, "no such page", f"use one of {', '.join(self._routes)}")
        allowed, respond = self._routes[path]
        if method != allowed and not (method == "HEAD" and allowed == "GET"):
            response = error_response(405, f"expected {allowed}", f"use {allowed} {path}")
            return HttpResponse(405, response.content, headers={"Allow": allowed})
        if allowed == "POST" and not _JSON_TYPE.fullmatch(kind):
            raise BadRequestError(415, "expected JSON", "send Content-Type: application/json")
        return respond(body)

    def _predict(self, body: bytes) -> HttpResponse:
        ids = parse_ids(body)
        predictions = self._predictor.predict([str(each) for each in ids], limit=QUICK_TIMEOUT)
        facts: dict[str, Any] = {
            "predictions": [self._prediction(each, predictions) for each in ids],
            "budget": predictions.budget,
        }
        if predictions.unreachable is not None and any(
            _is_unanswered(str(each), predictions) for each in ids
        ):
            return self._unreachable(predictions.unreachable, facts)
        return json_response(200, facts)

    def _prediction(self, given: Id, predictions: Predictions) -> dict[str, Any]:
        text = str(given)
        if text in predictions.unknown:
            return {"id": given, "error": "no node of this graph", "snapshot": predictions.snapshot}
        if text not in predictions.values:
            return {"id": given, "error": "not answered"}
        values = predictions.values[text].tolist()
        classes = self._predictor.run.calibration.classes
        values_by_name: dict[str, Any] = (
            {"probabilities": dict(zip(map(str, classes), values, strict=True))}
            if classes
            else {"score": values[0]}
        )
        return {
            "id": given,
            **values_by_name,
            "snapshot": predictions.snapshot,
            "cached": text in predictions.cached,
        }

    def _budget(self) -> HttpResponse:
        problem = self._predictor.refresh_budget(limit=QUICK_TIMEOUT)
        facts = {"snapshot": self._predictor.snapshot, "budget": self._predictor.budget()}
        return json_response(200, facts) if problem is None else self._unreachable(problem, facts)

    def _health(self) -> HttpResponse:
        problem = self._predictor.refresh_budget(limit=0.0)
        facts = {
            "status": "ok" if problem is None else "waiting",
            "data_party": self._peer,
            "snapshot": self._predictor.snapshot,
        }
        return json_response(200, facts if problem is None else facts | {"waiting": problem})

    def _unreachable(self, problem: str, facts: dict[str, Any]) -> HttpResponse:
        facts = {
            "error": problem,
            "what_to_do": UNREACHABLE_ADVICE,
            "waiting_for": self._peer,
            **facts,
        }
        response = json_response(503, facts)
        return HttpResponse(503, response.content, headers={"Retry-After": "5"})


def _is_unanswered(text: str, predictions: Predictions) -> bool:
    return text not in predictions.values and text not in predictions.unknown


def _page(predictor: NodePredictor, peer: str) -> HttpResponse:
    return page_response(page_of(predictor, peer=peer), policy=POLICY)
