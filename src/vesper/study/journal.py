"""The journal of a study: one line of JSON a finished cell, on disk before the next is begun.

A line that a crash has torn is left out when read, and not built upon when the next is written.
"""

import json
import math
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vesper.study.cell import Line, newest


def read_lines(path: Path) -> list[Line]:
    """Read what is finished; the newest line of a cell counts."""
    if not path.exists():
        return []
    found = []
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            facts: dict[str, Any] = json.loads(text)
            found.append(line_of(facts))
        except (ValueError, TypeError, KeyError):
            continue
    return newest(found)


def append_line(path: Path, line: Line) -> None:
    """Write one line, on disk before this returns."""
    with path.open("ab+") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(end - 1, 0))
        torn = b"\n" if file.read() not in (b"", b"\n") else b""
        file.write(torn + json.dumps(facts_of(line)).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def facts_of(line: Line) -> dict[str, Any]:
    """A line as JSON can hold it: no infinity, and nothing that is not known."""
    facts = {key: value for key, value in asdict(line).items() if value is not None}
    return facts | {"epsilon": "inf" if math.isinf(line.epsilon) else line.epsilon}


def line_of(facts: dict[str, Any]) -> Line:
    """The line that `facts_of` was made of."""
    histogram = facts.get("histogram")
    known = {"histogram": tuple(histogram)} if histogram is not None else {}
    return Line(**facts | {"epsilon": float(facts["epsilon"])} | known)
