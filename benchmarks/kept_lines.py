"""Lines that a benchmark has measured, one of JSON each: a stopped one goes on after them."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

L = TypeVar("L")


def read_results(path: Path, kind: type[L]) -> list[L]:
    """Read what was measured before."""
    if not path.exists():
        return []
    return [kind(**json.loads(row)) for row in path.read_text().splitlines()]


def append_result(path: Path, line: Any) -> None:
    """Write a line down."""
    with path.open("a") as file:
        file.write(json.dumps(asdict(line)) + os.linesep)
