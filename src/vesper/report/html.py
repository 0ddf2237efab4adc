"""Style sheet of the pages, and HTML tables with one line per item.

Pages follow light and dark mode, fit phones and paper, and load nothing from elsewhere.
"""

from collections.abc import Mapping, Sequence
from html import escape

UNKNOWN = "-"


def lines_table(columns: Mapping[str, Sequence[str]]) -> str:
    """Lay out columns side by side; a column without any known value is left out.

    Words are aligned left, numbers right.

    >>> lines_table({"graph": ["a b"], "nodes": ["7"], "spent": ["-"]})
    '<table class="lines"><tr><th class="words">graph</th><th>nodes</th></tr>\
<tr><td class="words">a b</td><td>7</td></tr></table>'
    """
    known = [(name, cells) for name, cells in columns.items() if any(map(_is_known, cells))]
    words = [' class="words"' if any(map(_is_word, cells)) else "" for _, cells in known]
    head = _row("th", [name for name, _ in known], words)
    rows = (_row("td", row, words) for row in zip(*(cells for _, cells in known), strict=True))
    return f'<table class="lines">{head}{"".join(rows)}</table>'


def number(value: float | None, form: str, unit: str = "") -> str:
    """Format a number, or a dash where it is unknown.

    >>> number(0.25, ".1f", " %"), number(None, "g")
    ('0.2 %', '-')
    """
    return UNKNOWN if value is None else f"{value:{form}}{unit}"


def _row(kind: str, cells: Sequence[str], words: Sequence[str]) -> str:
    tags = (
        f"<{kind}{word}>{escape(cell)}</{kind}>" for cell, word in zip(cells, words, strict=True)
    )
    return f"<tr>{''.join(tags)}</tr>"


def _is_known(cell: str) -> bool:
    return cell not in (UNKNOWN, "")


def _is_word(cell: str) -> bool:
    return cell[:1].isalpha()


STYLE = """
:root { color-scheme: light dark;
  --paper: #f6f7f9; --card: #ffffff; --ink: #1b2430; --soft: #5b6776; --rule: #dfe4ea;
  --accent: #2b62a8; --second: #b3621b; --good: #1d7a4c; --good-paper: #e7f5ed;
  --warn: #9a4a00; --warn-paper: #fdf1e1; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #12161c; --card: #1b2129; --ink: #e7ecf2; --soft: #9fabb9; --rule: #323b46;
  --accent: #7fb2f0; --second: #eba665; --good: #6fd3a0; --good-paper: #16301f;
  --warn: #f2b46a; --warn-paper: #362611; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 940px; margin: 0 auto; padding: 28px 16px 48px; }
header p { margin: 0; color: var(--soft); }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 4px; letter-spacing: -0.01em; }
h2 { font-size: 1.1rem; margin: 0 0 10px; }
h3 { font-size: 0.95rem; margin: 18px 0 6px; }
p { margin: 0 0 10px; }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 12px;
  padding: 20px 22px; margin-top: 16px; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px;
  margin-top: 18px; }
.figure { background: var(--card); border: 1px solid var(--rule); border-radius: 12px;
  padding: 12px 16px; }
.figure b { display: block; font-size: 1.55rem; line-height: 1.25; font-weight: 650;
  font-variant-numeric: tabular-nums; }
.figure span { color: var(--soft); font-size: 0.85rem; }
.verdict { border-radius: 10px; padding: 11px 14px; margin: 0 0 14px; font-weight: 600; }
.verdict.good { color: var(--good); background: var(--good-paper); }
.verdict.warn { color: var(--warn); background: var(--warn-paper); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 330px), 1fr));
  gap: 16px; margin-top: 16px; }
.charts section { margin: 0; }
.note { color: var(--soft); font-size: 0.86rem; margin: 8px 0 0; }
ul { margin: 0; padding-left: 20px; } li { margin-bottom: 6px; }
table { width: 100%; border-collapse: collapse; font-size: 0.9rem; }
td, th { text-align: left; padding: 5px 8px 5px 0; border-top: 1px solid var(--rule);
  vertical-align: top; font-weight: 400; }
th { color: var(--soft); width: 45%; }
tr:first-child > * { border-top: 0; }
td { font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.lines th { width: auto; } .lines :is(td, th) { text-align: right; white-space: nowrap; }
.lines .words { text-align: left; white-space: normal; overflow-wrap: normal; }
section:has(> .lines), .side-by-side, .list { overflow-x: auto; }
.side-by-side .lines :is(td, th):not(:first-child) { white-space: normal; min-width: 7.5rem; }
.side-by-side .lines :is(td, th):first-child { text-align: left; color: var(--soft);
  min-width: 8.5rem; position: sticky; left: 0; background: var(--card); }
.list .lines :is(td, th) { white-space: nowrap; padding-right: 14px; }
main:has(.side-by-side, .list) { max-width: 1240px; }
a { color: var(--accent); }
.downloads { font-size: 0.9rem; margin-top: 4px; } .downloads a { margin-left: 6px; }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr));
  gap: 4px 32px; }
code { font: 0.88em ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
footer { color: var(--soft); font-size: 0.82rem; margin-top: 20px; }
svg { display: block; width: 100%; max-width: 520px; height: auto; margin: 0 auto; }
svg .tick { font-size: 12px; fill: var(--soft); }
svg .value { fill: var(--accent); font-weight: 600; }
svg .strong { fill: var(--card); font-weight: 600; }
svg .grid { stroke: var(--rule); stroke-width: 1; }
svg .baseline { stroke: var(--soft); stroke-width: 1.4; stroke-dasharray: 5 4; }
svg .curve { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
svg .curve.validation { stroke: var(--accent); } svg .point.validation { fill: var(--accent); }
svg .point.cloud { fill-opacity: .45; }
svg .curve.test { stroke: var(--second); } svg .point.test { fill: var(--second); }
svg .interval { fill: var(--accent); fill-opacity: .16; }
svg .ring { fill: none; stroke: var(--accent); stroke-width: 1.6; }
svg.gauge { max-width: none; height: 14px; }
.ends { display: flex; justify-content: space-between; margin: 4px 0 10px; font-size: 0.86rem;
  color: var(--soft); }
svg .cell, svg .spent { fill: var(--accent); } svg .track { fill: var(--rule); }
svg .level { stroke-width: 1.8; stroke-dasharray: 5 4; }
.s0 { --own: #2b62a8; } .s1 { --own: #b3621b; } .s2 { --own: #1d7a4c; } .s3 { --own: #8a3fa0; }
.s4 { --own: #b0263a; } .s5 { --own: #5b6776; }
@media (prefers-color-scheme: dark) {
  .s0 { --own: #7fb2f0; } .s1 { --own: #eba665; } .s2 { --own: #6fd3a0; } .s3 { --own: #cf9be0; }
  .s4 { --own: #f08a98; } .s5 { --own: #9fabb9; } }
svg :is(.curve, .level):is(.s0, .s1, .s2, .s3, .s4, .s5) { stroke: var(--own); }
svg .point:is(.s0, .s1, .s2, .s3, .s4, .s5) { fill: var(--own); }
.key:is(.s0, .s1, .s2, .s3, .s4, .s5) { border-color: var(--own); }
.key.level { border-top-style: dashed; border-top-width: 2px; }
.note .item { white-space: nowrap; margin-right: 12px; }
.key { display: inline-block; width: 18px; height: 0; border-top: 3px solid; vertical-align: middle;
  margin-right: 5px; }
.key.validation { border-color: var(--accent); } .key.test { border-color: var(--second); }
.key.dashed { border-top: 2px dashed var(--soft); }
@media (max-width: 520px) { main { padding: 18px 12px 32px; } section { padding: 16px 14px; }
  h1 { font-size: 1.4rem; } .figures { grid-template-columns: 1fr 1fr; gap: 8px; }
  .figure { padding: 10px 12px; } .figure b { font-size: 1.3rem; } }
@media print { .downloads { display: none; }
  :root { --paper: #fff; --card: #fff; --ink: #000; --soft: #444; --rule: #ccc;
    --accent: #2b62a8; --second: #b3621b; --good: #14583a; --good-paper: #fff;
    --warn: #7a3a00; --warn-paper: #fff; }
  main { max-width: none; padding: 0; } body { font-size: 11pt; }
  section, .figure { break-inside: avoid; } .verdict { border: 1.5px solid currentColor; }
  .charts { grid-template-columns: 1fr 1fr; } * { print-color-adjust: exact; } }
"""
