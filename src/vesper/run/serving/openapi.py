"""The interface of `vesper serve` as OpenAPI 3.1."""

from typing import Any

from vesper.run.serving.http_body import LONGEST_ID, MOST_IDS
from vesper.run.serving.predicted import NodePredictor
from vesper.version import VERSION

_ID = {"anyOf": [{"type": "string", "minLength": 1, "maxLength": LONGEST_ID}, {"type": "integer"}]}
_BUDGET = {
    "type": ["object", "null"],
    "description": "Of the graph that is answered about; null before it was first heard of.",
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
    partly = {"allOf": [problem, {"$ref": "#/components/schemas/Predictions"}]}
    predict = {
        "summary": "Predict nodes",
        "requestBody": {"required": True, "content": _json(_asked())},
        "responses": {
            "200": _response("Every id is answered, or no node.", _ref("Predictions")),
            "400": _response("The request is not understood.", problem),
            "403": _response("The budget does not allow it; what is cached is there.", partly),
            "503": _response("The data party is away; what is cached is there.", partly),
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "vesper serve", "version": VERSION, "description": _description()},
        "paths": {
            "/predict": {"post": predict},
            "/budget": {"get": _get("What is spent and left", {"budget": _BUDGET})},
            "/health": {"get": _get("Whether the data party is there", {"status": _text()})},
        },
        "components": {"schemas": {"Error": _ERROR, "Predictions": _predictions(predictor)}},
    }


def _asked() -> dict[str, Any]:
    ids = {"type": "array", "minItems": 1, "maxItems": MOST_IDS, "items": _ID}
    return {
        "type": "object",
        "properties": {"ids": ids},
        "required": ["ids"],
        "additionalProperties": False,
    }


def _predictions(predictor: NodePredictor) -> dict[str, Any]:
    classes = predictor.run.calibration.classes
    said: dict[str, Any] = {
        "probabilities": {
            "type": "object",
            "properties": {str(name): {"type": "number"} for name in classes},
        }
    }
    if not classes:
        said = {"score": {"type": "number"}}
    properties = {
        "id": _ID,
        **said,
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
    return "Predictions from released values; nothing that is answered twice is paid twice."


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
