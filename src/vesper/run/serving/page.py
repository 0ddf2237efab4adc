"""The page at `/` of `vesper serve`: what it does, and a form to try it. Nothing is loaded."""

from html import escape

from vesper.run.serving.http_response import policy_of
from vesper.run.serving.predicted import NodePredictor

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
const said = document.getElementById("said");
document.getElementById("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const ids = document.getElementById("ids").value.split("\\n").map((id) => id.trim());
  said.textContent = "asking ..";
  try {
    const answer = await fetch("predict", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ ids: ids.filter((id) => id) }),
    });
    said.textContent = answer.status + "\\n" + JSON.stringify(await answer.json(), null, 2);
  } catch (error) {
    said.textContent = "vesper serve cannot be reached";
  }
});
"""


POLICY = policy_of(script=_SCRIPT, style=_STYLE)


def page_of(predictor: NodePredictor, *, peer: str) -> str:
    """Write the page."""
    run = predictor.run
    classes = ", ".join(escape(str(name)) for name in run.calibration.classes[:20])
    gives = f"probabilities of {len(run.calibration.classes)} classes ({classes})"
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>vesper serve</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>
<body>
<h1>vesper serve</h1>
<p>Predictions of a model that was trained with <b>{escape(peer)}</b>: method
<code>{escape(run.config.run.method)}</code>, plan {escape(run.plan)}. Gives
{gives if classes else "a score"}.</p>
<form id="form"><p><label for="ids">Ids, one a line</label>
<textarea id="ids" rows="4" autofocus></textarea></p><p><button>Predict</button></p></form>
<pre id="said" role="status" aria-live="polite"></pre>
<h2>For programs</h2>
<table>
<tr><td><code>POST /predict</code></td><td><code>{{"ids": ["u1", "u2"]}}</code></td></tr>
<tr><td><code>GET /budget</code></td><td>what is spent and left of the graph's budget</td></tr>
<tr><td><code>GET /health</code></td><td>whether {escape(peer)} is there</td></tr>
<tr><td><a href="openapi.json"><code>GET /openapi.json</code></a></td><td>OpenAPI</td></tr>
</table>
<p>What was answered once is kept here: asked again it costs and crosses nothing. A graph that came
after training is charged to its own budget when it is first asked about; a refusal (403) carries
what is left. While {escape(peer)} is away (503), what is kept is still answered.</p>
<script>{_SCRIPT}</script>
</body>
</html>
"""
