"""Page of `vesper serve` at `/`: a form to try it, with the results as a table.

The page loads nothing from elsewhere, and whatever the server sends is shown as text, never as
markup.
"""

from html import escape

from vesper.serving.http.server import policy_of
from vesper.serving.predictor import NodePredictor

MOST_COLUMNS = 6
"""Classes with a column of their own; if there are more, only the most probable one is shown."""
MOST_ROWS = 1000
"""Rows of the table; the rest is in the JSON below it."""

_STYLE = """
:root { color-scheme: light dark;
  --paper: #f6f7f9; --card: #fff; --ink: #1b2430; --soft: #5b6776; --rule: #dfe4ea;
  --accent: #2b62a8; --on-accent: #fff; --warn: #9a4a00; --warn-paper: #fdf1e1; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #12161c; --card: #1b2129; --ink: #e7ecf2; --soft: #9fabb9; --rule: #323b46;
  --accent: #7fb2f0; --on-accent: #12161c; --warn: #f2b46a; --warn-paper: #362611; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 0 auto; color: var(--ink);
  padding: 1.5rem 1rem 3rem; background: var(--paper); }
h1 { margin: 0 0 .3rem; } h2 { font-size: 1.1rem; margin: 1.6rem 0 .4rem; }
a { color: var(--accent); }
label, summary, .note { color: var(--soft); }
code, pre, textarea { font: 14px/1.4 ui-monospace, monospace; }
pre, .results { background: var(--card); border: 1px solid var(--rule); border-radius: 8px;
  padding: .8rem; overflow: auto; max-height: 32rem; }
textarea { width: 100%; padding: .5rem; border-radius: 8px; border: 1px solid var(--rule);
  background: var(--card); color: var(--ink); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
td, th { text-align: left; padding: .3rem 1rem .3rem 0; border-top: 1px solid var(--rule);
  font-weight: 400; vertical-align: top; }
tr:first-child > * { border-top: 0; } th { color: var(--soft); }
.number { text-align: right; white-space: nowrap; }
.largest { font-weight: 700; color: var(--accent); }
button { font: inherit; padding: .35rem 1.2rem; border: 0; border-radius: 8px; cursor: pointer;
  background: var(--accent); color: var(--on-accent); }
.problem { color: var(--warn); background: var(--warn-paper); border-radius: 8px;
  padding: .6rem .8rem; }
[hidden] { display: none; }
"""

_SCRIPT = f"""
const find = (id) => document.getElementById(id);
const notice = find("notice"), results = find("results"), raw = find("raw");
function add(row, kind, text, style) {{
  const cell = document.createElement(kind);
  cell.textContent = text;
  cell.className = style || "";
  row.append(cell);
}}
function columnsOf(predictions) {{
  const known = predictions.find((each) => each.probabilities);
  if (!known) return predictions.some((each) => "score" in each) ? ["score"] : [];
  const classes = Object.keys(known.probabilities);
  return classes.length > {MOST_COLUMNS} ? ["most probable", "probability"] : classes;
}}
function cellsOf(each, columns) {{
  if ("score" in each) return [[each.score.toPrecision(4), "number"]];
  if (!each.probabilities) return columns.map(() => ["", ""]);
  const ranked = Object.entries(each.probabilities).sort((a, b) => b[1] - a[1]);
  const share = (value) => (100 * value).toFixed(1) + " %";
  if (Object.keys(each.probabilities).length > {MOST_COLUMNS})
    return [[ranked[0][0], ""], [share(ranked[0][1]), "number largest"]];
  return columns.map((name) => [
    share(each.probabilities[name]), name === ranked[0][0] ? "number largest" : "number"]);
}}
function show(answer) {{
  const predictions = answer.predictions || [];
  const columns = columnsOf(predictions), table = document.createElement("table");
  const head = table.insertRow();
  ["id", ...columns].forEach((name, k) =>
    add(head, "th", name, k > 0 && name !== "most probable" ? "number" : ""));
  add(head, "th", "");
  for (const each of predictions.slice(0, {MOST_ROWS})) {{
    const row = table.insertRow();
    add(row, "td", each.id);
    for (const [text, style] of cellsOf(each, columns)) add(row, "td", text, style);
    add(row, "td", each.error || (each.cached ? "stored before" : ""), "note");
  }}
  results.hidden = predictions.length === 0;
  results.replaceChildren(table);
  const lines = [];
  if (answer.error) lines.push(answer.error + ": " + answer.what_to_do);
  if (predictions.length > {MOST_ROWS}) lines.push("the first {MOST_ROWS} are shown");
  const budget = answer.budget;
  if (budget && budget.spent_epsilon !== undefined && budget.spent_epsilon !== null)
    lines.push("budget of the graph: epsilon " + budget.spent_epsilon.toPrecision(3) +
      " spent of " + budget.epsilon);
  notice.textContent = lines.join("; ");
  notice.className = answer.error ? "problem" : "note";
  find("json").textContent = JSON.stringify(answer, null, 2);
  raw.hidden = false;
}}
find("form").addEventListener("submit", async (event) => {{
  event.preventDefault();
  const ids = find("ids").value.split("\\n").map((id) => id.trim());
  notice.textContent = "waiting for predictions ..";
  notice.className = "note";
  try {{
    const response = await fetch("predict", {{
      method: "POST",
      headers: {{ "Content-Type": "application/json" }},
      body: JSON.stringify({{ ids: ids.filter((id) => id) }}),
    }});
    show(await response.json());
  }} catch (error) {{
    results.hidden = raw.hidden = true;
    notice.textContent = "vesper serve cannot be reached";
    notice.className = "problem";
  }}
}});
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
<p id="notice" class="note" role="status" aria-live="polite"></p>
<div id="results" class="results" hidden></div>
<details id="raw" hidden><summary>The same as JSON</summary><pre id="json"></pre></details>
<h2>For programs</h2>
<table>
<tr><td><code>POST /predict</code></td><td><code>{{"ids": ["u1", "u2"]}}</code></td></tr>
<tr><td><code>GET /budget</code></td><td>what is spent and left of the graph's budget</td></tr>
<tr><td><code>GET /health</code></td><td>whether {escape(peer)} is reachable</td></tr>
<tr><td><a href="openapi.json"><code>GET /openapi.json</code></a></td><td>OpenAPI</td></tr>
</table>
<p class="note">Answers are stored here: a repeated request costs nothing and sends nothing to
{escape(peer)}. A snapshot is charged to the budget of its graph when it is first queried. While
{escape(peer)} is unreachable (503), stored answers are still available.</p>
<script>{_SCRIPT}</script>
</body>
</html>
"""
