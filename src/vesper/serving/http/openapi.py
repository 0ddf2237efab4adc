"""Interface of `vesper serve` as OpenAPI 3.1."""

from typing import Any

from vesper.serving.http.request_ids import (
    MAX_ID_LENGTH,
    MAX_ID_NUMBER,
    MAX_IDS,
    MIN_ID_NUMBER,
)
from vesper.serving.http.server import MAX_BODY_BYTES, MAX_WORKING
from vesper.serving.predictor import NodePredictor
from vesper.version import VERSION

_ID = {
    "anyOf": [
        {"type": "string", "minLength": 1, "maxLength": MAX_ID_LENGTH},
        {"type": "integer", "minimum": MIN_ID_NUMBER, "maximum": MAX_ID_NUMBER},
    ]
}
_BUDGET = {
    "type": ["object", "null"],
    "description": "Budget of the graph that is served; null until it was first received.",
    "properties": {
        name: {"type": "number"} for name in ("epsilon", "delta", "spent_epsilon", "left_epsilon")
    },
}
_ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "what_to_do": {"type": "string"}},
    "required": ["error", "what_to_do"],
}


def openapi_of(predictor: NodePredictor) -> dict[str, Any]:
    """Describe the interface, with the classes of this model."""
    problem = {"$ref": "#/components/schemas/Error"}
    partial = {"allOf": [problem, {"$ref": "#/components/schemas/Predictions"}]}
    predict = {
        "summary": "Predict nodes",
        "requestBody": {"required": True, "content": _json(_request_schema())},
        "responses": {
            "200": _response("Every id is predicted, or is no node.", _ref("Predictions")),
            "400": _response("The request is not valid.", problem),
            "411": _response("The length of the body is missing.", problem),
            "413": _response(f"The body has more than {MAX_BODY_BYTES} bytes.", problem),
            "415": _response("The content type is not application/json.", problem),
            "500": _response("An internal error.", problem),
            "502": _response("The data party sent something it must not send.", problem),
            "503": _response(
                "The data party is unreachable, and cached predictions follow; or "
                f"{MAX_WORKING} requests are in progress.",
                {"anyOf": [partial, problem]},
            ),
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "vesper serve", "version": VERSION, "description": _description()},
        "paths": {
            "/predict": {"post": predict},
            "/budget": {"get": _get("What is spent and left", {"budget": _BUDGET})},
            "/health": {"get": _get("Whether the data party is reachable", {"status": _text()})},
        },
        "components": {"schemas": {"Error": _ERROR, "Predictions": _predictions(predictor)}},
    }


def _request_schema() -> dict[str, Any]:
    ids = {"type": "array", "minItems": 1, "maxItems": MAX_IDS, "items": _ID}
    return {
        "type": "object",
        "properties": {"ids": ids},
        "required": ["ids"],
        "additionalProperties": False,
    }


def _predictions(predictor: NodePredictor) -> dict[str, Any]:
    classes = predictor.run.calibration.classes
    prediction_schema: dict[str, Any] = {
        "probabilities": {
            "type": "object",
            "properties": {str(name): {"type": "number"} for name in classes},
        }
    }
    if not classes:
        prediction_schema = {"score": {"type": "number"}}
    properties = {
        "id": _ID,
        **prediction_schema,
        "snapshot": _text(),
        "cached": {"type": "boolean"},
        "error": _text(),
    }
    items = {"type": "object", "properties": properties, "required": ["id"]}
    return {
        "type": "object",
        "properties": {"predictions": {"type": "array", "items": items}, "budget": _BUDGET},
        "required": ["predictions", "budget"],
    }


def _description() -> str:
    return "Predictions from released values; nothing is charged twice."


def _text() -> dict[str, Any]:
    return {"type": "string"}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _response(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": _json(schema)}


def _get(summary: str, properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties}
    return {"summary": summary, "responses": {"200": _response(summary, schema)}}
