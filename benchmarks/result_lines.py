"""Results of a benchmark as lines of JSON, so that a stopped benchmark can resume."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

L = TypeVar("L")


def read_results(path: Path, kind: type[L]) -> list[L]:
    """Read all earlier results."""
    if not path.exists():
        return []
    return [kind(**json.loads(row)) for row in path.read_text().splitlines()]


def append_result(path: Path, line: Any) -> None:
    """Append one result."""
    with path.open("a") as file:
        file.write(json.dumps(asdict(line)) + os.linesep)
