"""Names of all methods: to refuse and to complete them before anything heavy is loaded."""

from vesper.errors import InputError
from vesper.method.settings import current_name

METHOD_NAMES = (
    "certified",
    "paper-gin",
    "paper-gcn",
    "mlp",
    "gin",
    "gcn",
    "vfgnn",
    "gap",
    "progap",
    "edgerand",
    "lapgraph",
)
"""In the order of the registry, which has the methods themselves."""


def expect_method_name(name: str) -> str:
    """Return the current name of a method.

    Raises:
        InputError: there is no such method.
    """
    name = current_name(name)
    if name not in METHOD_NAMES:
        raise InputError(f"method: expected one of {', '.join(METHOD_NAMES)}, got '{name}'")
    return name
