"""Interface of `vesper serve` as OpenAPI 3.1, and its page at `/` with a form to try it.

The page loads nothing from elsewhere.
"""

from html import escape
from typing import Any

from vesper.serving.http.request_ids import (
    MAX_ID_LENGTH,
    MAX_ID_NUMBER,
    MAX_IDS,
    MIN_ID_NUMBER,
)
from vesper.serving.http.server import MAX_BODY_BYTES, MAX_WORKING, policy_of
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


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
  color: #1a1a1a; background: #fff; }
code, pre, textarea { font: 14px/1.4 ui-monospace, monospace; }
pre { background: #f4f4f2; padding: .8rem; overflow: auto; }
textarea { width: 100%; box-sizing: border-box; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .2rem 1rem .2rem 0; }
button { font: inherit; padding: .3rem 1rem; }
@media (prefers-color-scheme: dark) {
  body { color: #e6e6e6; background: #161616; } pre { background: #262626; } }
"""

_SCRIPT = """
const output = document.getElementById("output");
document.getElementById("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const ids = document.getElementById("ids").value.split("\\n").map((id) => id.trim());
  output.textContent = "waiting for predictions ..";
  try {
    const response = await fetch("predict", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ ids: ids.filter((id) => id) }),
    });
    output.textContent = response.status + "\\n" + JSON.stringify(await response.json(), null, 2);
  } catch (error) {
    output.textContent = "vesper serve cannot be reached";
  }
});
"""


POLICY = policy_of(script=_SCRIPT, style=_STYLE)


def page_of(predictor: NodePredictor, *, peer: str) -> str:
    """Render the page."""
    run = predictor.run
    classes = ", ".join(escape(str(name)) for name in run.calibration.classes[:20])
    probabilities = f"probabilities of {len(run.calibration.classes)} classes ({classes})"
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>vesper serve</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>
<body>
<h1>vesper serve</h1>
<p>Predictions of a model that was trained with <b>{escape(peer)}</b>: method
<code>{escape(run.config.run.method)}</code>, plan {escape(run.plan)}. Each prediction is
{probabilities if classes else "a score"}.</p>
<form id="form"><p><label for="ids">Ids, one per line</label>
<textarea id="ids" rows="4" autofocus></textarea></p><p><button>Predict</button></p></form>
<pre id="output" role="status" aria-live="polite"></pre>
<h2>For programs</h2>
<table>
<tr><td><code>POST /predict</code></td><td><code>{{"ids": ["u1", "u2"]}}</code></td></tr>
<tr><td><code>GET /budget</code></td><td>what is spent and left of the graph's budget</td></tr>
<tr><td><code>GET /health</code></td><td>whether {escape(peer)} is reachable</td></tr>
<tr><td><a href="openapi.json"><code>GET /openapi.json</code></a></td><td>OpenAPI</td></tr>
</table>
<p>Answers are stored here: a repeated request costs nothing and sends nothing to {escape(peer)}.
A snapshot is charged to the budget of its graph when it is first queried. While {escape(peer)} is
unreachable (503), stored answers are still available.</p>
<script>{_SCRIPT}</script>
</body>
</html>
"""
