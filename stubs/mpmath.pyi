"""mpmath has no types of its own; what tests use of it is dynamic."""

from typing import Any

def __getattr__(name: str) -> Any: ...
