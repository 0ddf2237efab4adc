"""A table with a line for each of several things, as HTML: words to the left, numbers right."""

from collections.abc import Mapping, Sequence
from html import escape

UNKNOWN = "-"


def lines_table(columns: Mapping[str, Sequence[str]]) -> str:
    """Columns side by side; one of which nothing is known is left out.

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
    """A number, or that it is not known.

    >>> number(0.25, ".1f", " %"), number(None, "g")
    ('0.2 %', '-')
    """
    return UNKNOWN if value is None else f"{value:{form}}{unit}"


def _row(kind: str, cells: Sequence[str], words: Sequence[str]) -> str:
    shown = (
        f"<{kind}{word}>{escape(cell)}</{kind}>" for cell, word in zip(cells, words, strict=True)
    )
    return f"<tr>{''.join(shown)}</tr>"


def _is_known(cell: str) -> bool:
    return cell not in (UNKNOWN, "")


def _is_word(cell: str) -> bool:
    return cell[:1].isalpha()
